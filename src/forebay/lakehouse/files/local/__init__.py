from forebay.lakehouse.files.local.files import LocalFiles

__all__ = ["LocalFiles"]

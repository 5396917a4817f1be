from forebay.lakehouse.files.objects.files import ObjectFiles
from forebay.lakehouse.files.objects.store import BearerToken

__all__ = ["BearerToken", "ObjectFiles"]

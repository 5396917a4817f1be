"""Made-up persons and claims: what an event's `data` holds besides the links."""

from random import Random
from typing import Any

_FIRST_NAMES = ("Ada", "Bruno", "Chidi", "Dana", "Elif", "Farid", "Greta", "Hana", "Ines", "Jonas")
_LAST_NAMES = (
    "Abara",
    "Bell",
    "Costa",
    "Dahl",
    "Egli",
    "Fontaine",
    "Grau",
    "Holm",
    "Ito",
    "Jansen",
)
_NOTES = ("Estimate attached.", "Photos of the roof.", "Second visit on Monday.", "Call back.", "")
_CONTACTS = ("Insured", "Claimant", "Adjuster")


def claim_data(random: Random, number: int) -> dict[str, Any]:
    name = f"{random.choice(_FIRST_NAMES)} {random.choice(_LAST_NAMES)}"
    reviewer = f"{random.choice(_FIRST_NAMES)} {random.choice(_LAST_NAMES)}"
    return {
        "originalAssignmentId": f"OA-{number}",
        "xnAddress": f"XN-{random.randrange(10_000):04d}",
        "carrierId": f"C{random.randrange(40)}",
        "description": "Property claim",
        "note": random.choice(_NOTES),
        "author": reviewer,
        "senderReviewerName": reviewer,
        "senderReviewerEmail": _address(reviewer),
        "carrierReviewerName": name,
        "carrierReviewerEmail": _address(name),
        "dateTime": "01/05/2026 03:30 AM",
        "adm": {"coverageLoss": {"claimNumber": f"CLM-{random.randrange(10**6):06d}"}},
        "contact": _contact(random, name),
    }


def _contact(random: Random, name: str) -> dict[str, Any]:
    phone = {"type": "Home", "number": f"555-{random.randrange(10_000):04d}", "extension": ""}
    methods = {"phone": phone, "email": {"address": _address(name)}}
    return {"type": random.choice(_CONTACTS), "name": name, "contactMethods": methods}


def _address(name: str) -> str:
    return f"{name.lower().replace(' ', '.')}@mail.example"

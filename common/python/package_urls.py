"""The package's links: of the repository whose address WORKBOOK_ADDRESS has while the wheel is made; without it, none."""

import os


def dynamic_metadata(field, settings=None):
    address = os.environ.get("WORKBOOK_ADDRESS")
    return {"Repository": address, "Changes": f"{address}/blob/main/CHANGELOG.md"} if address else {}

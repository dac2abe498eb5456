"""The shape of every JSON document, as types; the published JSON Schemas are made from them."""

"""The schemas of docs/ for tests: a document of ours has no key that its schema does not describe."""
import json
import pathlib

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def published(name):
    return json.loads((DOCS / f"{name}.schema.json").read_text())


def strict(name):
    def close(node):
        if isinstance(node, dict):
            if "properties" in node:
                node.setdefault("additionalProperties", False)
            for child in node.values():
                close(child)
        elif isinstance(node, list):
            for child in node:
                close(child)
        return node

    return close(published(name))

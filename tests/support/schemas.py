"""The schemas of docs/ for tests: a document of ours has no key that its schema does not describe."""
import functools
import json
import pathlib

import jsonschema

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


@functools.cache
def _validator(name):
    schema = strict(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def validate(document, name):
    """Raises what jsonschema.validate does; the schema itself is checked once, which takes as long as ten documents."""
    error = jsonschema.exceptions.best_match(_validator(name).iter_errors(document))
    if error is not None:
        raise error

"""JSON with numbers of any kind."""

from typing import Any

import orjson
from fastapi import Response


def reply(content: Any) -> Response:
    """Return content as an answer in JSON."""
    return Response(orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY), media_type="application/json")

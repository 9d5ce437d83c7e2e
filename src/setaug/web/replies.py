"""JSON responses, with support for numpy numbers."""

from typing import Any

import orjson
from fastapi import Response


def reply(content: Any) -> Response:
    """Return content as a JSON response."""
    return Response(orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY), media_type="application/json")

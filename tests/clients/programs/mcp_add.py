"""An MCP server on stdin and stdout with one tool, which adds and writes what it was asked.

Usage: mcp_add.py FILE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
TOOL = {"name": "add", "description": "Adds two numbers.", "inputSchema": SCHEMA}


def answer(method: str, params: dict) -> dict:
    if method == "initialize":
        info = {"name": "demo", "version": "1"}
        version = params["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        arguments = params["arguments"]
        Path(sys.argv[1]).write_text(json.dumps(arguments))
        return {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)

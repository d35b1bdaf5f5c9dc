"""A client of Open Responses, and OpenAI's own, over HTTP and WebSockets, against argv[1].

The first holds every answer and event to the published OpenAPI document. The model thinks, speaks
and calls weather twice in its first answer, and says "sunny" when it sees a result.
"""

from __future__ import annotations

import sys

import openai
from openresponses import BadRequestError, OpenResponses, WebSocketConnection

URL = f"{sys.argv[1]}/v1"
VERSION = {"OpenResponses-Version": "2026-04-24"}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL = {"type": "function", "name": "weather", "parameters": PARAMETERS}
ASK = {"model": "small", "input": "weather?", "tools": [TOOL]}
KINDS = ["reasoning", "message", "function_call", "function_call"]


def items(response):
    """The output; the client wraps items."""
    return [getattr(item, "root", item) for item in response.output]


def said(response):
    (part,) = items(response)[-1].content
    return getattr(part, "root", part).text


def results(response):
    return [
        {"type": "function_call_output", "call_id": item.call_id, "output": "<|tool|>sunny"}
        for item in items(response)
        if item.type == "function_call"
    ]


def check(events, response):
    """All events are the specification's own."""
    unknown = {e.type for e in events if type(e).__name__.startswith("Unknown")}
    assert not unknown, unknown
    assert [item.type for item in items(response)] == KINDS, response
    assert {"response.reasoning.delta", "response.function_call_arguments.done"} <= {
        e.type for e in events
    }


def over_http(client):
    response = client.responses.create(ASK)
    assert [item.type for item in items(response)] == KINDS, response
    again = {**ASK, "previous_response_id": response.id, "input": results(response)}
    assert said(client.responses.create(again)) == "sunny"
    logged = {**ASK, "stream": True, "top_logprobs": 2, "max_output_tokens": 16}
    with client.responses.create({**ASK, "stream": True}) as stream:
        events = list(stream)
    check(events, events[-1].response)
    with client.responses.create(logged) as stream:
        assert list(stream)[-1].response.incomplete_details.reason == "max_output_tokens"
    try:
        client.responses.create({**ASK, "input": results(response)})
        raise AssertionError("a result without its call was accepted")
    except BadRequestError:
        pass
    history = [{"type": "message", "role": "user", "content": "hi"}]
    phased = {"type": "message", "role": "assistant", "content": "a", "phase": "commentary"}
    return client.responses.compact({"model": "small", "input": [*history, phased]})


def over_a_socket(config, compacted):
    with WebSocketConnection(config) as socket:
        turn = socket.create({**ASK, "store": False})
        check(list(turn), turn.final_response)
        first = turn.final_response
        more = {**ASK, "store": False, "previous_response_id": first.id}
        turn = socket.create({**more, "input": results(first)})
        list(turn)
        assert said(turn.final_response) == "sunny"
        turn = socket.create(more)
        list(turn)
        assert turn.error.error.code == "previous_response_not_found", turn.error
        short = [item.model_dump(exclude_unset=True) for item in items(compacted)]
        new = {"type": "message", "role": "user", "content": "on"}
        turn = socket.create({"model": "small", "input": [*short, new]})
        list(turn)
        assert turn.final_response.status == "completed"


def openais_own():
    client = openai.OpenAI(base_url=URL, api_key="x", max_retries=0)
    with client.responses.connect() as connection:
        for _ in range(2):
            connection.response.create(model="small", input="weather?", store=False)
            kinds = []
            for event in connection:
                kinds.append(event.type)
                if event.type == "response.completed":
                    break
            assert "response.reasoning_text.delta" in kinds, kinds
    compacted = client.responses.compact(model="small", input="hi")
    assert compacted.output[-1].type == "compaction" and compacted.usage.total_tokens > 0


with OpenResponses(base_url=URL, api_key="x", default_headers=VERSION) as client:
    over_a_socket(client.config, over_http(client))
openais_own()
print("all is well")

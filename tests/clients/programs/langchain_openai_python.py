"""LangChain's binding of OpenAI's API."""

import json
import os
from typing import Annotated

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, Field

server = {"base_url": os.environ["SERVER_URL"] + "/v1", "api_key": os.environ["SERVER_KEY"]}
model = ChatOpenAI(model="demo", temperature=0, max_tokens=32, max_retries=0, **server)
QUESTION = [HumanMessage("How many legs has a spider?")]


class Legs(BaseModel):
    """How many legs."""

    legs: int = Field(ge=0, le=8)


@tool
def get_weather(city: Annotated[str, Field(max_length=10)]) -> str:
    """The weather of a city."""
    return city


seen = {}
seen["chat"] = model.invoke(QUESTION).content
seen["streamed"] = "".join(chunk.content for chunk in model.stream(QUESTION))
bound = model.bind_tools([get_weather], tool_choice="any", strict=True)
call = bound.invoke(QUESTION, max_tokens=256).tool_calls[0]
seen["tool"] = [call["name"], sorted(call["args"])]
legs = model.with_structured_output(Legs, method="json_schema").invoke(QUESTION, max_tokens=256)
seen["structured"] = {"legs": legs.legs}
embeddings = OpenAIEmbeddings(model="demo", check_embedding_ctx_length=False, **server)
seen["embeddings"] = [len(e) for e in embeddings.embed_documents(["a fox", "a spider"])]
try:
    ChatOpenAI(model="nobody", max_retries=0, **server).invoke(QUESTION)
except Exception as e:
    seen["errors"] = {"unknown_model": [type(e).__name__, e.status_code]}
print(json.dumps(seen))

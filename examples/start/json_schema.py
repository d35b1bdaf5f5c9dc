"""An answer as an object of a pydantic class: the schema constrains every token."""

import sys
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from wherry import MLCEngine

MODEL = sys.argv[1] if len(sys.argv) > 1 else "demo"


class Animal(BaseModel):
    """What is asked for."""

    model_config = ConfigDict(extra="forbid")
    name: str = Field(max_length=20)
    kind: Literal["mammal", "bird", "fish"]
    legs: int = Field(ge=0, le=8)


with MLCEngine(MODEL) as engine:
    answer = engine.chat.completions.create(
        messages=[{"role": "user", "content": "Describe a fox."}],
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "animal", "strict": True, "schema": Animal.model_json_schema()},
        },
        temperature=0,
    )
    animal = Animal.model_validate_json(answer.choices[0].message.content)
    print(f"{animal.name} is a {animal.kind} with {animal.legs} legs")

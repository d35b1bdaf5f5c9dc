package dev.wherry

import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.jsonObject

/** One message of a conversation. [json] is OpenAI's object. */
public class Message(public val json: JsonObject) {
    public constructor(role: String, content: String) : this(
        JsonObject(mapOf("role" to JsonPrimitive(role), "content" to JsonPrimitive(content))),
    )

    public companion object {
        @JvmStatic public fun system(text: String): Message = Message("system", text)

        @JvmStatic public fun user(text: String): Message = Message("user", text)

        @JvmStatic public fun assistant(text: String): Message = Message("assistant", text)

        /** The result of a call that the model asked for. */
        @JvmStatic
        public fun tool(callId: String, content: String): Message = Message(
            JsonObject(
                mapOf(
                    "role" to JsonPrimitive("tool"),
                    "tool_call_id" to JsonPrimitive(callId),
                    "content" to JsonPrimitive(content),
                ),
            ),
        )
    }
}

/** What is asked: OpenAI's object. Fields that are not set are the model's own defaults. */
public class Request internal constructor(internal val json: JsonObject) {
    internal fun streamed(stream: Boolean): JsonObject =
        JsonObject(json + ("stream" to JsonPrimitive(stream)))

    public companion object {
        /** A request as JSON, of any field that the engine knows. */
        @JvmStatic
        public fun of(json: String): Request = Request(
            try {
                Json.parseToJsonElement(json).jsonObject
            } catch (e: IllegalArgumentException) {
                throw InvalidArgumentException("A request is one JSON object: ${e.message}")
            },
        )

        /** A conversation to go on with, as Java calls it; [settings] add fields. */
        @JvmStatic
        @JvmOverloads
        public fun chat(messages: List<Message>, settings: Settings = Settings()): Request = Request(
            JsonObject(settings.json + ("messages" to JsonArray(messages.map(Message::json)))),
        )

        /** A text to go on with. */
        @JvmStatic
        @JvmOverloads
        public fun text(prompt: String, settings: Settings = Settings()): Request =
            Request(JsonObject(settings.json + ("prompt" to JsonPrimitive(prompt))))
    }
}

/**
 * How a request is answered; names and meanings are OpenAI's.
 *
 * @param maxTokens the most tokens of the output; null: until the model ends or the context does
 * @param temperature 0 takes the most likely token each time
 * @param topP of the distribution, the most likely tokens that together have this share
 * @param seed the same seed gives the same answer
 * @param stop texts that end the answer
 * @param tools functions that the model may ask for
 * @param more any other field
 * @param responseFormat what the text is held to
 * @param toolChoice whether a tool has to be called
 */
public class Settings @JvmOverloads constructor(
    maxTokens: Int? = null,
    temperature: Double? = null,
    topP: Double? = null,
    seed: Long? = null,
    stop: List<String>? = null,
    tools: JsonArray? = null,
    more: Map<String, JsonElement> = emptyMap(),
    responseFormat: ResponseFormat? = null,
    toolChoice: ToolChoice? = null,
) {
    internal val json: JsonObject = buildJsonObject {
        maxTokens?.let { put("max_tokens", JsonPrimitive(it)) }
        temperature?.let { put("temperature", JsonPrimitive(it)) }
        topP?.let { put("top_p", JsonPrimitive(it)) }
        seed?.let { put("seed", JsonPrimitive(it)) }
        stop?.let { texts -> put("stop", JsonArray(texts.map(::JsonPrimitive))) }
        tools?.let { put("tools", it) }
        responseFormat?.let { put("response_format", it.json) }
        toolChoice?.let { put("tool_choice", it.json) }
        more.forEach { (name, value) -> put(name, value) }
    }
}

/** What an answer's text is held to, whatever the model would rather write. [json] is OpenAI's object. */
public class ResponseFormat(public val json: JsonObject) {
    public companion object {
        /** An object of JSON. */
        @JvmField
        public val JSON_OBJECT: ResponseFormat = ResponseFormat(typed("json_object"))

        /** JSON that fits a JSON Schema; keywords that are not enforced are refused by name. */
        @JvmStatic
        @JvmOverloads
        public fun jsonSchema(schema: JsonObject, name: String = "answer"): ResponseFormat {
            val inner = JsonObject(mapOf("name" to JsonPrimitive(name), "schema" to schema))
            return ResponseFormat(typed("json_schema", "json_schema" to inner))
        }

        /** A text that a regular expression matches as a whole. */
        @JvmStatic
        public fun regex(pattern: String): ResponseFormat =
            ResponseFormat(typed("regex", "pattern" to JsonPrimitive(pattern)))

        /** A text of a grammar, in GBNF; its first rule is `root`. */
        @JvmStatic
        public fun grammar(gbnf: String): ResponseFormat =
            ResponseFormat(typed("grammar", "grammar" to JsonPrimitive(gbnf)))

        private fun typed(type: String, vararg more: Pair<String, JsonElement>): JsonObject =
            JsonObject(mapOf("type" to JsonPrimitive(type), *more))
    }
}

/** Whether tools are called. [json] is OpenAI's value. */
public class ToolChoice(public val json: JsonElement) {
    public companion object {
        /** As the model likes. */
        @JvmField
        public val AUTO: ToolChoice = ToolChoice(JsonPrimitive("auto"))

        @JvmField
        public val NONE: ToolChoice = ToolChoice(JsonPrimitive("none"))

        /** At least one. */
        @JvmField
        public val REQUIRED: ToolChoice = ToolChoice(JsonPrimitive("required"))

        /** This one. */
        @JvmStatic
        public fun function(name: String): ToolChoice = ToolChoice(
            JsonObject(
                mapOf(
                    "type" to JsonPrimitive("function"),
                    "function" to JsonObject(mapOf("name" to JsonPrimitive(name))),
                ),
            ),
        )
    }
}

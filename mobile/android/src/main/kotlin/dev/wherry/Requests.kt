package dev.wherry

import java.util.Base64
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

    /** The role of who says it: "system", "user", "assistant" or "tool". */
    public val role: String get() = json.string("role").orEmpty()

    /** The text of the content. */
    public val text: String get() = json.string("content")
        ?: json.list("content").joinToString("") { it.string("text").orEmpty() }

    public companion object {
        @JvmStatic public fun system(text: String): Message = Message("system", text)

        @JvmStatic public fun user(text: String): Message = Message("user", text)

        /**
         * Creates a message with images, which stand before the text, for a model that reads them.
         * Each is a file in JPEG, PNG or GIF.
         */
        @JvmStatic
        public fun user(text: String, images: List<ByteArray>): Message {
            if (images.isEmpty()) return user(text)
            val parts = images.map { part("image_url", JsonObject(mapOf("url" to JsonPrimitive(dataUrl(it))))) }
            val texts = listOf(text).filter { it.isNotEmpty() }.map { part("text", JsonPrimitive(it)) }
            return Message(JsonObject(mapOf("role" to JsonPrimitive("user"), "content" to JsonArray(parts + texts))))
        }

        private fun part(type: String, value: JsonElement): JsonObject =
            JsonObject(mapOf("type" to JsonPrimitive(type), type to value))

        private fun dataUrl(file: ByteArray): String =
            "data:;base64," + Base64.getEncoder().encodeToString(file)

        @JvmStatic public fun assistant(text: String): Message = Message("assistant", text)

        /** Creates the message with the result of a tool call. */
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

/** A request in the form of OpenAI's object. Missing fields have the model's own defaults. */
public class Request internal constructor(internal val json: JsonObject) {
    internal fun streamed(stream: Boolean): JsonObject =
        JsonObject(json + ("stream" to JsonPrimitive(stream)))

    public companion object {
        /** Creates a request from JSON, with any field that the engine knows. */
        @JvmStatic
        public fun of(json: String): Request = Request(
            try {
                Json.parseToJsonElement(json).jsonObject
            } catch (e: IllegalArgumentException) {
                throw InvalidArgumentException("A request is one JSON object: ${e.message}")
            },
        )

        /** Creates a request to continue a conversation, for Java; [settings] add fields. */
        @JvmStatic
        @JvmOverloads
        public fun chat(messages: List<Message>, settings: Settings = Settings()): Request = Request(
            JsonObject(settings.json + ("messages" to JsonArray(messages.map(Message::json)))),
        )

        /** Creates a request to continue a text. */
        @JvmStatic
        @JvmOverloads
        public fun text(prompt: String, settings: Settings = Settings()): Request =
            Request(JsonObject(settings.json + ("prompt" to JsonPrimitive(prompt))))
    }
}

/**
 * Settings of a request; names and meanings are OpenAI's.
 *
 * @param maxTokens maximum number of output tokens; null: until the model or the context ends
 * @param temperature temperature of sampling; 0 takes the most likely token each time
 * @param topP total probability of the most likely tokens that may be sampled
 * @param seed seed of sampling; the same seed gives the same answer
 * @param stop texts that end the answer
 * @param tools functions that the model may call
 * @param more any other fields of the request
 * @param responseFormat format to which the text is constrained
 * @param toolChoice whether the model must call a tool
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

/** The format to which an answer's text is constrained. [json] is OpenAI's object. */
public class ResponseFormat(public val json: JsonObject) {
    public companion object {
        /** Constrains the text to any JSON object. */
        @JvmField
        public val JSON_OBJECT: ResponseFormat = ResponseFormat(typed("json_object"))

        /**
         * Constrains the text to JSON that matches a JSON Schema; keywords that cannot be enforced
         * are errors.
         */
        @JvmStatic
        @JvmOverloads
        public fun jsonSchema(schema: JsonObject, name: String = "answer"): ResponseFormat {
            val inner = JsonObject(mapOf("name" to JsonPrimitive(name), "schema" to schema))
            return ResponseFormat(typed("json_schema", "json_schema" to inner))
        }

        /** Constrains the text so that a regular expression matches it as a whole. */
        @JvmStatic
        public fun regex(pattern: String): ResponseFormat =
            ResponseFormat(typed("regex", "pattern" to JsonPrimitive(pattern)))

        /** Constrains the text to a grammar in GBNF, whose first rule is `root`. */
        @JvmStatic
        public fun grammar(gbnf: String): ResponseFormat =
            ResponseFormat(typed("grammar", "grammar" to JsonPrimitive(gbnf)))

        private fun typed(type: String, vararg more: Pair<String, JsonElement>): JsonObject =
            JsonObject(mapOf("type" to JsonPrimitive(type), *more))
    }
}

/** Whether the model may or must call tools. [json] is OpenAI's value. */
public class ToolChoice(public val json: JsonElement) {
    public companion object {
        /** The model decides whether to call a tool. */
        @JvmField
        public val AUTO: ToolChoice = ToolChoice(JsonPrimitive("auto"))

        @JvmField
        public val NONE: ToolChoice = ToolChoice(JsonPrimitive("none"))

        /** The model must call at least one tool. */
        @JvmField
        public val REQUIRED: ToolChoice = ToolChoice(JsonPrimitive("required"))

        /** The model must call the tool of this name. */
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

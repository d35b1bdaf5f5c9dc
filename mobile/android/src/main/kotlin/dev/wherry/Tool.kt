package dev.wherry

import kotlinx.coroutines.CancellationException
import kotlinx.serialization.KSerializer
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.serializer

/**
 * A function that the model may call in a [ChatSession].
 *
 *     Tool("weather", "The weather of a city", schema) { arguments -> forecast(arguments) }
 *
 * @property parameters JSON Schema of the arguments; null: the function has none
 * @property strict whether the arguments are constrained to the schema, which needs a package with
 *     `--grammar`
 * @param call gets the arguments and returns the result for the model; a failure is told to the
 *     model, which may try again
 */
public class Tool @JvmOverloads constructor(
    public val name: String,
    public val description: String,
    public val parameters: JsonObject? = null,
    public val strict: Boolean = false,
    private val call: suspend (arguments: JsonObject) -> String,
) {
    public companion object {
        /**
         * Creates a tool whose arguments are a serializable class:
         * `Tool.of<City>("weather", "The weather of a city") { city -> forecast(city.name) }`.
         */
        public inline fun <reified A> of(
            name: String,
            description: String,
            strict: Boolean = false,
            noinline call: suspend (arguments: A) -> String,
        ): Tool = of(serializer<A>(), name, description, strict, call)

        /** Creates a tool whose arguments [serializer] reads. */
        public fun <A> of(
            serializer: KSerializer<A>,
            name: String,
            description: String,
            strict: Boolean = false,
            call: suspend (arguments: A) -> String,
        ): Tool = Tool(name, description, jsonSchema(serializer.descriptor), strict) {
            call(decoded(serializer, it.toString()))
        }
    }

    internal val json: JsonObject = buildJsonObject {
        put("type", JsonPrimitive("function"))
        put(
            "function",
            buildJsonObject {
                put("name", JsonPrimitive(name))
                put("description", JsonPrimitive(description))
                parameters?.let { put("parameters", it) }
                if (strict) put("strict", JsonPrimitive(true))
            },
        )
    }

    /** Calls the function with arguments as the model wrote them; returns its result or failure. */
    internal suspend fun called(arguments: String): String = try {
        call(Json.parseToJsonElement(arguments.ifBlank { "{}" }).jsonObject)
    } catch (e: CancellationException) {
        throw e
    } catch (e: Exception) { // the app's own, of any kind
        "Error: ${e.message ?: e.javaClass.simpleName}"
    }
}

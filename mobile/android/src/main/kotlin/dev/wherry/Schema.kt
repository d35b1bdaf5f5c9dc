package dev.wherry

import kotlinx.serialization.DeserializationStrategy
import kotlinx.serialization.ExperimentalSerializationApi
import kotlinx.serialization.SerializationException
import kotlinx.serialization.descriptors.PolymorphicKind
import kotlinx.serialization.descriptors.PrimitiveKind
import kotlinx.serialization.descriptors.SerialDescriptor
import kotlinx.serialization.descriptors.SerialKind
import kotlinx.serialization.descriptors.StructureKind
import kotlinx.serialization.descriptors.elementNames
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/**
 * Returns the JSON Schema of a serializable class: `jsonSchema(serializer<Forecast>().descriptor)`.
 *
 * Properties with a default value may be missing, all others are required. Sealed classes are told
 * apart by the property "type", as kotlinx.serialization writes them.
 *
 * @throws InvalidArgumentException a part of the class has no schema, such as a contextual serializer
 */
public fun jsonSchema(descriptor: SerialDescriptor): JsonObject = SchemaWriter().complete(descriptor)

/** Reads an answer that was constrained to the schema of a class. */
internal fun <T> decoded(serializer: DeserializationStrategy<T>, text: String): T = try {
    READER.decodeFromString(serializer, text)
} catch (e: SerializationException) {
    throw UnreadableAnswerException("The answer is no ${nameOf(serializer.descriptor)}: ${e.message}", text)
} catch (e: IllegalArgumentException) { // of a class that checks its values itself
    throw UnreadableAnswerException("The answer is no ${nameOf(serializer.descriptor)}: ${e.message}", text)
}

/** Returns the request with its answer constrained to the schema of a class. */
internal fun constrained(request: JsonObject, descriptor: SerialDescriptor): JsonObject {
    val format = ResponseFormat.jsonSchema(jsonSchema(descriptor), nameOf(descriptor))
    return JsonObject(request + ("response_format" to format.json))
}

private val READER = Json { ignoreUnknownKeys = true }

@OptIn(ExperimentalSerializationApi::class)
internal fun nameOf(descriptor: SerialDescriptor): String =
    descriptor.serialName.removeSuffix("?").substringAfterLast('.').filter { it.isLetterOrDigit() || it == '_' }

@OptIn(ExperimentalSerializationApi::class)
private class SchemaWriter {
    private val open = mutableListOf<String>() // classes that are being written
    private val defined = mutableMapOf<String, JsonObject?>() // those that contain themselves

    fun complete(descriptor: SerialDescriptor): JsonObject {
        val schema = of(descriptor)
        if (defined.isEmpty()) return schema
        return JsonObject(schema + ("\$defs" to JsonObject(defined.mapValues { checkNotNull(it.value) })))
    }

    private fun of(descriptor: SerialDescriptor): JsonObject {
        val schema = if (descriptor.isInline) of(descriptor.getElementDescriptor(0)) else bare(descriptor)
        if (!descriptor.isNullable) return schema
        return obj("anyOf" to JsonArray(listOf(schema, obj("type" to text("null")))))
    }

    private fun bare(descriptor: SerialDescriptor): JsonObject = when (val kind = descriptor.kind) {
        PrimitiveKind.BOOLEAN -> obj("type" to text("boolean"))
        PrimitiveKind.BYTE -> integer(Byte.MIN_VALUE.toLong(), Byte.MAX_VALUE.toLong())
        PrimitiveKind.SHORT -> integer(Short.MIN_VALUE.toLong(), Short.MAX_VALUE.toLong())
        PrimitiveKind.INT -> integer(Int.MIN_VALUE.toLong(), Int.MAX_VALUE.toLong())
        PrimitiveKind.LONG -> obj("type" to text("integer"))
        PrimitiveKind.FLOAT, PrimitiveKind.DOUBLE -> obj("type" to text("number"))
        PrimitiveKind.CHAR -> obj("type" to text("string"), "minLength" to JsonPrimitive(1), "maxLength" to JsonPrimitive(1))
        PrimitiveKind.STRING -> obj("type" to text("string"))
        SerialKind.ENUM -> obj("enum" to JsonArray(descriptor.elementNames.map(::text)))
        StructureKind.LIST -> obj("type" to text("array"), "items" to of(descriptor.getElementDescriptor(0)))
        StructureKind.MAP -> map(descriptor)
        StructureKind.CLASS, StructureKind.OBJECT -> once(descriptor) { structure(descriptor) }
        PolymorphicKind.SEALED -> once(descriptor) { sealed(descriptor) }
        else -> throw InvalidArgumentException(
            "${descriptor.serialName} ($kind) has no JSON Schema; classes, sealed classes, enums, lists, maps with " +
                "texts as keys, numbers, texts and booleans have",
        )
    }

    /** Writes a class, or refers to it from inside of itself. */
    private fun once(descriptor: SerialDescriptor, write: () -> JsonObject): JsonObject {
        val name = descriptor.serialName.removeSuffix("?")
        val reference = obj("\$ref" to text("#/\$defs/$name"))
        if (name in open) {
            defined.putIfAbsent(name, null)
            return reference
        }
        open += name
        val schema = write()
        open -= name
        if (name !in defined) return schema
        defined[name] = schema
        return reference
    }

    private fun structure(descriptor: SerialDescriptor, type: String? = null): JsonObject {
        val properties = LinkedHashMap<String, JsonElement>()
        val required = mutableListOf<String>()
        if (type != null) {
            properties["type"] = obj("const" to text(type))
            required += "type"
        }
        for (i in 0 until descriptor.elementsCount) {
            val name = descriptor.getElementName(i)
            properties[name] = of(descriptor.getElementDescriptor(i))
            if (!descriptor.isElementOptional(i)) required += name
        }
        return obj(
            "type" to text("object"),
            "properties" to JsonObject(properties),
            "required" to JsonArray(required.map(::text)),
            "additionalProperties" to JsonPrimitive(false),
        )
    }

    /** The elements of a sealed class's descriptor are "type" and "value", whose elements are its classes. */
    private fun sealed(descriptor: SerialDescriptor): JsonObject {
        val classes = descriptor.getElementDescriptor(1)
        val branches = (0 until classes.elementsCount).map { i ->
            structure(classes.getElementDescriptor(i), classes.getElementName(i))
        }
        return obj("anyOf" to JsonArray(branches))
    }

    private fun map(descriptor: SerialDescriptor): JsonObject {
        val key = descriptor.getElementDescriptor(0)
        if (key.kind != PrimitiveKind.STRING || key.isNullable) {
            throw InvalidArgumentException("Keys of ${descriptor.serialName} are ${key.serialName}; JSON's are texts")
        }
        return obj("type" to text("object"), "additionalProperties" to of(descriptor.getElementDescriptor(1)))
    }

    private fun integer(least: Long, most: Long) =
        obj("type" to text("integer"), "minimum" to JsonPrimitive(least), "maximum" to JsonPrimitive(most))

    private fun text(text: String) = JsonPrimitive(text)

    private fun obj(vararg items: Pair<String, JsonElement>) = JsonObject(mapOf(*items))
}

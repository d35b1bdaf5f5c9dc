/** What the sample's Markdown makes of a text: its text, and (kind, styled text) of each span. */
import androidx.compose.ui.text.SpanStyle
import dev.wherry.sample.markdown
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonPrimitive

private fun kind(style: SpanStyle) = when {
    style.fontFamily != null -> "code"
    style.fontWeight != null -> "bold"
    else -> "italic"
}

fun main(arguments: Array<String>) {
    val made = markdown(arguments[0])
    val spans = made.spans.map { (style, from, to) -> "${kind(style)}:${made.text.substring(from, to)}" }
    println(JsonArray(listOf(JsonPrimitive(made.text), JsonArray(spans.map(::JsonPrimitive)))))
}

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
    val styled = markdown(arguments[0])
    val spans = styled.spans.map { (style, from, to) -> "${kind(style)}:${styled.text.substring(from, to)}" }
    println(JsonArray(listOf(JsonPrimitive(styled.text), JsonArray(spans.map(::JsonPrimitive)))))
}

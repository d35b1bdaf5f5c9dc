package androidx.compose.ui.text

import androidx.compose.ui.text.font.FontFamily
import androidx.compose.ui.text.font.FontStyle
import androidx.compose.ui.text.font.FontWeight

data class SpanStyle(
    val fontWeight: FontWeight? = null,
    val fontStyle: FontStyle? = null,
    val fontFamily: FontFamily? = null,
)

/** Keeps the spans, which tests compare: (style, begin, end). */
class AnnotatedString(val text: String, val spans: List<Triple<SpanStyle, Int, Int>> = emptyList()) {
    class Builder {
        private val text = StringBuilder()
        private val spans = mutableListOf<Triple<SpanStyle, Int, Int>>()
        private val open = mutableListOf<Pair<SpanStyle, Int>>()

        fun append(text: String) {
            this.text.append(text)
        }

        fun pushStyle(style: SpanStyle): Int {
            open += style to text.length
            return open.size - 1
        }

        fun pop() {
            val (style, begin) = open.removeAt(open.lastIndex)
            spans += Triple(style, begin, text.length)
        }

        fun toAnnotatedString() = AnnotatedString(text.toString(), spans)
    }
}

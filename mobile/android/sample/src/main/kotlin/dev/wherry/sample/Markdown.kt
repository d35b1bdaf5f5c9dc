package dev.wherry.sample

import androidx.compose.ui.text.AnnotatedString
import androidx.compose.ui.text.SpanStyle
import androidx.compose.ui.text.font.FontFamily
import androidx.compose.ui.text.font.FontStyle
import androidx.compose.ui.text.font.FontWeight

private val CODE = SpanStyle(fontFamily = FontFamily.Monospace)
private val BOLD = SpanStyle(fontWeight = FontWeight.Bold)
private val ITALIC = SpanStyle(fontStyle = FontStyle.Italic)
private val INLINE = Regex("""`([^`]+)`|\*\*(.+?)\*\*|\*(\S(?:.*?\S)?)\*""")
private val ITEM = Regex("""^(\s*)[-*+] """)

/** Styles the Markdown that models write: headings, lists, code, bold and italic; the rest as it is. */
fun markdown(text: String): AnnotatedString {
    val made = AnnotatedString.Builder()
    var inCode = false
    for ((i, line) in text.lines().withIndex()) {
        if (line.trimStart().startsWith("```")) {
            inCode = !inCode
            continue
        }
        if (i > 0) made.append("\n")
        when {
            inCode -> made.styled(CODE, line)
            line.startsWith("#") -> made.styled(BOLD, line.trimStart('#').trim())
            else -> made.inline(ITEM.replace(line, "$1• "))
        }
    }
    return made.toAnnotatedString()
}

private fun AnnotatedString.Builder.inline(line: String) {
    var at = 0
    for (found in INLINE.findAll(line)) {
        append(line.substring(at, found.range.first))
        val (code, bold, italic) = found.destructured
        when {
            code.isNotEmpty() -> styled(CODE, code)
            bold.isNotEmpty() -> styled(BOLD, bold)
            else -> styled(ITALIC, italic)
        }
        at = found.range.last + 1
    }
    append(line.substring(at))
}

private fun AnnotatedString.Builder.styled(style: SpanStyle, text: String) {
    pushStyle(style)
    append(text)
    pop()
}

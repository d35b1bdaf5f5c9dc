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
    val styledText = AnnotatedString.Builder()
    var inCode = false
    for ((i, line) in text.lines().withIndex()) {
        if (line.trimStart().startsWith("```")) {
            inCode = !inCode
            continue
        }
        if (i > 0) styledText.append("\n")
        when {
            inCode -> styledText.styled(CODE, line)
            line.startsWith("#") -> styledText.styled(BOLD, line.trimStart('#').trim())
            else -> styledText.inline(ITEM.replace(line, "$1• "))
        }
    }
    return styledText.toAnnotatedString()
}

private fun AnnotatedString.Builder.inline(line: String) {
    var at = 0
    for (match in INLINE.findAll(line)) {
        append(line.substring(at, match.range.first))
        val (code, bold, italic) = match.destructured
        when {
            code.isNotEmpty() -> styled(CODE, code)
            bold.isNotEmpty() -> styled(BOLD, bold)
            else -> styled(ITALIC, italic)
        }
        at = match.range.last + 1
    }
    append(line.substring(at))
}

private fun AnnotatedString.Builder.styled(style: SpanStyle, text: String) {
    pushStyle(style)
    append(text)
    pop()
}

package androidx.compose.ui.text.font

class FontWeight(val weight: Int) {
    companion object {
        val Bold = FontWeight(700)
    }
}

enum class FontStyle { Normal, Italic }

class FontFamily {
    companion object {
        val Monospace = FontFamily()
    }
}

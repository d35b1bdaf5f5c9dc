package androidx.compose.material3

import androidx.compose.foundation.layout.Row
import androidx.compose.foundation.layout.RowScope
import androidx.compose.runtime.Composable
import androidx.compose.ui.Modifier
import androidx.compose.ui.graphics.Color
import androidx.compose.ui.text.AnnotatedString

class ColorScheme(val error: Color)

object MaterialTheme {
    val colorScheme: ColorScheme
        @Composable get() = ColorScheme(Color.Unspecified)
}

@Composable
fun MaterialTheme(content: @Composable () -> Unit): Unit = content()

@Composable
fun Text(text: AnnotatedString, modifier: Modifier = Modifier, color: Color = Color.Unspecified): Unit = Unit

@Composable
fun Text(text: String, modifier: Modifier = Modifier, color: Color = Color.Unspecified): Unit = Unit

@Composable
fun Button(
    onClick: () -> Unit,
    modifier: Modifier = Modifier,
    enabled: Boolean = true,
    content: @Composable RowScope.() -> Unit,
): Unit = Row(modifier, content)

@Composable
fun OutlinedTextField(
    value: String,
    onValueChange: (String) -> Unit,
    modifier: Modifier = Modifier,
    enabled: Boolean = true,
): Unit = Unit

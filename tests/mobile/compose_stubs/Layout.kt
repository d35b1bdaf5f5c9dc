package androidx.compose.foundation.layout

import androidx.compose.runtime.Composable
import androidx.compose.ui.Modifier
import androidx.compose.ui.unit.Dp
import androidx.compose.ui.unit.dp

interface ColumnScope {
    fun Modifier.weight(weight: Float, fill: Boolean = true): Modifier
}

interface RowScope {
    fun Modifier.weight(weight: Float, fill: Boolean = true): Modifier
}

@Composable
fun Column(modifier: Modifier = Modifier, content: @Composable ColumnScope.() -> Unit) {
    content(object : ColumnScope { override fun Modifier.weight(weight: Float, fill: Boolean) = modifier })
}

@Composable
fun Row(modifier: Modifier = Modifier, content: @Composable RowScope.() -> Unit) {
    content(object : RowScope { override fun Modifier.weight(weight: Float, fill: Boolean) = modifier })
}

fun Modifier.fillMaxSize(fraction: Float = 1f): Modifier = this

fun Modifier.fillMaxWidth(fraction: Float = 1f): Modifier = this

fun Modifier.padding(all: Dp): Modifier = this

fun Modifier.padding(horizontal: Dp = 0.dp, vertical: Dp = 0.dp): Modifier = this

fun Modifier.padding(start: Dp = 0.dp, top: Dp = 0.dp, end: Dp = 0.dp, bottom: Dp = 0.dp): Modifier = this

fun Modifier.safeDrawingPadding(): Modifier = this

package androidx.lifecycle.viewmodel.compose

import androidx.compose.runtime.Composable
import androidx.lifecycle.ViewModel

@Composable
inline fun <reified M : ViewModel> viewModel(): M = error("a signature: there is no ${M::class}")

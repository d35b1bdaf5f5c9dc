package dev.wherry.sample

import android.os.Bundle
import androidx.activity.ComponentActivity
import androidx.activity.compose.setContent
import androidx.compose.foundation.layout.Column
import androidx.compose.foundation.layout.ColumnScope
import androidx.compose.foundation.layout.Row
import androidx.compose.foundation.layout.fillMaxSize
import androidx.compose.foundation.layout.fillMaxWidth
import androidx.compose.foundation.layout.padding
import androidx.compose.foundation.layout.safeDrawingPadding
import androidx.compose.foundation.lazy.LazyColumn
import androidx.compose.foundation.lazy.items
import androidx.compose.material3.Button
import androidx.compose.material3.MaterialTheme
import androidx.compose.material3.OutlinedTextField
import androidx.compose.material3.Text
import androidx.compose.runtime.Composable
import androidx.compose.runtime.getValue
import androidx.compose.runtime.mutableStateOf
import androidx.compose.runtime.saveable.rememberSaveable
import androidx.compose.runtime.setValue
import androidx.compose.ui.Modifier
import androidx.compose.ui.text.AnnotatedString
import androidx.compose.ui.unit.dp
import androidx.lifecycle.viewmodel.compose.viewModel

class MainActivity : ComponentActivity() {
    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        setContent { MaterialTheme { Screen(viewModel()) } }
    }
}

@Composable
fun Screen(model: ChatModel) {
    Column(Modifier.fillMaxSize().safeDrawingPadding().padding(12.dp)) {
        if (model.chosen == null) Offers(model) else Chat(model)
    }
}

/** The models, with their sizes and whether the device has the memory for them. */
@Composable
private fun Offers(model: ChatModel) {
    LazyColumn(Modifier.fillMaxWidth()) {
        items(OFFERS) { offer ->
            val obstacle = model.obstacle(offer)
            Text(offer.title, Modifier.padding(vertical = 4.dp))
            Text("${megabytes(offer.bytes)} MB${obstacle?.let { ", $it" }.orEmpty()}")
            Row {
                Button({ model.open(offer) }, enabled = obstacle == null) {
                    Text(if (model.isHere(offer)) "Open" else "Download")
                }
                if (offer.server != null && model.isHere(offer)) Button({ model.delete(offer) }) { Text("Delete") }
            }
        }
    }
}

@Composable
private fun ColumnScope.Chat(model: ChatModel) {
    LazyColumn(Modifier.weight(1f).fillMaxWidth()) {
        items(model.said) {
            Text(if (it.role == "user") AnnotatedString(it.text) else markdown(it.text), Modifier.padding(vertical = 4.dp))
        }
    }
    if (model.isHot) Text("The device is hot: answers are slower.")
    if (model.isShort) Text("Memory is short: close other apps, or take a smaller model.")
    if (model.forgotten > 0) Text("The oldest ${model.forgotten} messages are forgotten.")
    if (model.status.isNotEmpty()) Text(model.status, color = MaterialTheme.colorScheme.error)
    Button(model::leave) { Text("Models") }
    Asking(model)
}

@Composable
private fun Asking(model: ChatModel) {
    var text by rememberSaveable { mutableStateOf("") }
    Row {
        OutlinedTextField(text, { text = it }, Modifier.weight(1f).padding(end = 8.dp))
        if (model.answer != null) {
            Button(model::stop) { Text("Stop") }
        } else {
            if (model.said.isNotEmpty()) Button(model::regenerate) { Text("Again") }
            Button(
                onClick = {
                    model.send(text)
                    text = ""
                },
                enabled = model.session != null && text.isNotBlank(),
            ) { Text("Send") }
        }
    }
}

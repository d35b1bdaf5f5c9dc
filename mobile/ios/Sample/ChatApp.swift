import SwiftUI
import Wherry

/// A sample app that chats with a model in the app's folder "demo", or with one that it downloads
/// at its first start.
@main
struct ChatApp: App {
    var body: some Scene {
        WindowGroup { ChatView() }
    }
}

@MainActor
final class Conversation: ObservableObject {
    @Published var messages: [Message] = []
    @Published var state = "Loading"
    @Published var answering: Task<Void, Never>?
    private var engine: MLCEngine?

    /// Address of the model's folder (`assets/NAME` of `wherry package`) on a server; nil: the app
    /// contains the model.
    private let server: URL? = nil

    func load() async {
        do {
            let show: @Sendable (LoadProgress) -> Void = { progress in
                let share = 100 * progress.done / max(progress.total, 1)
                Task { @MainActor [weak self] in self?.state = "\(progress.phase) \(share) %" }
            }
            engine = try await MLCEngine.load(try await folder(show), progress: show)
            state = ""
        } catch {
            state = error.localizedDescription
        }
    }

    private func folder(_ show: @escaping @Sendable (LoadProgress) -> Void) async throws -> URL {
        guard let server else { return Bundle.main.resourceURL!.appendingPathComponent("demo") }
        let folder = URL.applicationSupportDirectory.appendingPathComponent("demo")
        try await Models.download(server, to: folder, progress: show)
        return folder
    }

    func send(_ text: String) {
        guard let engine, answering == nil else { return }
        messages += [.user(text), .assistant("")]
        let asked = Array(messages.dropLast())
        answering = Task {
            do {
                for try await chunk in engine.chat.completions.stream(asked) {
                    messages[messages.count - 1].content! += chunk.text
                }
            } catch {
                state = error.localizedDescription
            }
            answering = nil
        }
    }
}

struct ChatView: View {
    @StateObject private var conversation = Conversation()
    @State private var text = ""

    var body: some View {
        VStack {
            List(Array(conversation.messages.enumerated()), id: \.offset) { _, message in
                Text(message.content ?? "")
                    .foregroundStyle(message.role == "user" ? .secondary : .primary)
            }
            Text(conversation.state).font(.footnote)
            HStack {
                TextField("Message", text: $text).onSubmit(send)
                if let answering = conversation.answering {
                    Button("Stop") { answering.cancel() }
                } else {
                    Button("Send", action: send).disabled(text.isEmpty)
                }
            }
            .padding()
        }
        .task { await conversation.load() }
    }

    private func send() {
        conversation.send(text)
        text = ""
    }
}

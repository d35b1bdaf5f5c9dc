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
    /// Number of messages that the context had no room for in the last answer.
    @Published var forgotten = 0
    @Published var state = "Loading"
    @Published var answering: Task<Void, Never>?
    private var session: ChatSession?

    /// Address of the model's folder (`assets/NAME` of `wherry package`) on a server; nil: the app
    /// contains the model.
    private let server: URL? = nil

    func load() async {
        do {
            let show: @Sendable (LoadProgress) -> Void = { progress in
                let share = 100 * progress.done / max(progress.total, 1)
                Task { @MainActor [weak self] in self?.state = "\(progress.phase) \(share) %" }
            }
            let engine = try await MLCEngine.load(try await folder(show), progress: show)
            let session = ChatSession(engine, settings: Settings(maxTokens: 400))
            try await session.prewarm()
            self.session = session
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
        guard let session, answering == nil else { return }
        messages += [.user(text), .assistant("")]
        answering = Task {
            do {
                for try await chunk in session.stream(text) {
                    messages[messages.count - 1].content! += chunk.text
                }
            } catch {
                state = error.localizedDescription
            }
            forgotten = await session.droppedMessages
            answering = nil
        }
    }

    /// Answers the last message anew.
    func regenerate() {
        guard let session, answering == nil else { return }
        Task {
            guard let asked = try? await session.undo()?.content else { return }
            if let last = messages.lastIndex(where: { $0.role == "user" }) {
                messages.removeSubrange(last...)
            }
            send(asked)
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
            if conversation.forgotten > 0 {
                Text("The oldest \(conversation.forgotten) messages are forgotten.").font(.footnote)
            }
            Text(conversation.state).font(.footnote)
            HStack {
                TextField("Message", text: $text).onSubmit(send)
                if let answering = conversation.answering {
                    Button("Stop") { answering.cancel() }
                } else {
                    Button("Again") { conversation.regenerate() }
                        .disabled(conversation.messages.isEmpty)
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

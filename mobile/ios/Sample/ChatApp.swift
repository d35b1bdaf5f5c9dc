import SwiftUI
import Wherry

/// A sample app: a list of models, which it downloads if it does not contain them, and a chat with
/// the chosen one.
@main
struct ChatApp: App {
    @StateObject private var conversation = Conversation()

    var body: some Scene {
        WindowGroup {
            if conversation.chosen == nil {
                OffersView(conversation: conversation)
            } else {
                ChatView(conversation: conversation)
            }
        }
    }
}

@MainActor
final class Conversation: ObservableObject {
    @Published var messages: [Message] = []
    /// Number of messages that the context had no room for in the last answer.
    @Published var forgotten = 0
    @Published var state = ""
    @Published var answering: Task<Void, Never>?
    /// The model that is loaded or on its way; nil: the list of models is shown.
    @Published var chosen: Offer?
    @Published var isHot = false
    /// Whether memory is short.
    @Published var isShort = false
    private var engine: MLCEngine?
    private var session: ChatSession?
    private var loading: Task<Void, Never>?

    init() {
        Task { [weak self] in
            let changes = NotificationCenter.default.notifications(
                named: ProcessInfo.thermalStateDidChangeNotification)
            for await _ in changes {
                let heat = ProcessInfo.processInfo.thermalState
                self?.isHot = heat == .serious || heat == .critical
            }
        }
        Task { [weak self] in
            let name = UIApplication.didReceiveMemoryWarningNotification
            for await _ in NotificationCenter.default.notifications(named: name) {
                self?.isShort = true
            }
        }
    }

    func open(_ offer: Offer) {
        chosen = offer
        loading = Task {
            do {
                let show: @Sendable (LoadProgress) -> Void = { progress in
                    let share = 100 * progress.done / max(progress.total, 1)
                    Task { @MainActor [weak self] in self?.state = "\(progress.phase) \(share) %" }
                }
                let engine = try await MLCEngine.load(try await offer.fetch(show), progress: show)
                self.engine = engine
                let session = ChatSession(engine, settings: Settings(maxTokens: 400))
                try await session.prewarm()
                self.session = session
                state = ""
            } catch {
                state = error.localizedDescription
            }
        }
    }

    /// Goes back to the list of models; what is downloaded stays for the next time.
    func leave() {
        loading?.cancel()
        answering?.cancel()
        let old = engine
        Task { await old?.close() }
        engine = nil
        session = nil
        chosen = nil
        messages = []
        state = ""
        forgotten = 0
    }

    func send(_ text: String) {
        guard let session, answering == nil else { return }
        isShort = false
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
            guard let question = try? await session.undo()?.content else { return }
            if let last = messages.lastIndex(where: { $0.role == "user" }) {
                messages.removeSubrange(last...)
            }
            send(question)
        }
    }
}

struct OffersView: View {
    @ObservedObject var conversation: Conversation

    var body: some View {
        List(Offer.all) { offer in
            let obstacle = offer.obstacle
            VStack(alignment: .leading) {
                Text(offer.title)
                Text("\(megabytes(offer.bytes)) MB" + (obstacle.map { ", \($0)" } ?? "")).font(.footnote)
                HStack {
                    Button(offer.isHere ? "Open" : "Download") { conversation.open(offer) }
                        .disabled(obstacle != nil)
                    if offer.server != nil, offer.isHere {
                        Button("Delete", role: .destructive) { offer.delete() }
                    }
                }
                .buttonStyle(.bordered)
            }
        }
    }
}

struct ChatView: View {
    @ObservedObject var conversation: Conversation
    @State private var text = ""

    var body: some View {
        VStack {
            List(Array(conversation.messages.enumerated()), id: \.offset) { _, message in
                if message.role == "user" {
                    Text(message.content ?? "").foregroundStyle(.secondary)
                } else {
                    Text(markdown(message.content ?? ""))
                }
            }
            if conversation.isHot { Text("The device is hot: answers are slower.").font(.footnote) }
            if conversation.isShort {
                Text("Memory is short: close other apps, or take a smaller model.").font(.footnote)
            }
            if conversation.forgotten > 0 {
                Text("The oldest \(conversation.forgotten) messages are forgotten.").font(.footnote)
            }
            Text(conversation.state).font(.footnote)
            HStack {
                Button("Models") { conversation.leave() }
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
    }

    private func send() {
        conversation.send(text)
        text = ""
    }

    /// Styles a part of an answer that is not complete yet, too.
    private func markdown(_ text: String) -> AttributedString {
        let options = AttributedString.MarkdownParsingOptions(
            interpretedSyntax: .inlineOnlyPreservingWhitespace,
            failurePolicy: .returnPartiallyParsedIfPossible)
        return (try? AttributedString(markdown: text, options: options)) ?? AttributedString(text)
    }
}

import Foundation

/// Watches for the system's requests to an app with a model, as long as the object lives.
///
/// If memory is short, or the app goes to the background, where its memory use makes the system end
/// it sooner, the engine frees the caches of earlier conversations. Running answers get the
/// background time that the system grants, and are aborted when it is over.
final class SystemWatch: @unchecked Sendable {
    #if canImport(Darwin)
        private let pressure: DispatchSourceMemoryPressure
        private let observer: NSObjectProtocol
        private let heat: NSObjectProtocol

        init(_ app: App) {
            let queue = DispatchQueue.global()
            pressure = DispatchSource.makeMemoryPressureSource(
                eventMask: [.warning, .critical], queue: queue)
            pressure.setEventHandler { [weak app] in try? app?.trim() }
            pressure.activate()
            // UIKit's notification by its name, without importing UIKit: extensions and tools use
            // the engine, too.
            let background = Notification.Name("UIApplicationDidEnterBackgroundNotification")
            observer = NotificationCenter.default.addObserver(
                forName: background, object: nil, queue: nil
            ) { [weak app] _ in
                queue.async { try? app?.trim() }
            }
            heat = NotificationCenter.default.addObserver(
                forName: ProcessInfo.thermalStateDidChangeNotification, object: nil, queue: nil
            ) { _ in limitThreadsByHeat() }
            limitThreadsByHeat()
        }

        deinit {
            pressure.cancel()
            NotificationCenter.default.removeObserver(observer)
            NotificationCenter.default.removeObserver(heat)
        }
    #else
        init(_ app: App) {}
    #endif
}

#if canImport(Darwin)
    /// Lets a hot device cool down: two threads when the system must reduce its speed, one when it
    /// must do nothing else.
    private func limitThreadsByHeat() {
        let most: Int
        switch ProcessInfo.processInfo.thermalState {
        case .serious: most = 2
        case .critical: most = 1
        default: most = 0
        }
        try? MLCEngine.limitThreads(most)
    }
#endif

/// Keeps the process from being suspended until the running answers are complete.
func answerInBackground(_ app: App) {
    #if os(iOS) || os(tvOS) || os(visionOS)
        guard app.beginActivity() else { return }
        ProcessInfo.processInfo.performExpiringActivity(withReason: "answering") { expired in
            if expired {
                app.abortAll()
            } else {
                app.waitUntilIdle()
            }
        }
    #endif
}

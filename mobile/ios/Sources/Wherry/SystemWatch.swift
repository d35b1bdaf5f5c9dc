import Foundation

/// What the system asks of an app with a model: while this lives, the engine obeys.
///
/// Memory is short, or the app goes to the background, where what it keeps makes the system end it
/// sooner: caches of earlier conversations go. Running answers get the time in the background that
/// the system grants, and are aborted when it is over.
final class SystemWatch: @unchecked Sendable {
    #if canImport(Darwin)
        private let pressure: DispatchSourceMemoryPressure
        private let observer: NSObjectProtocol

        init(_ app: App) {
            let queue = DispatchQueue.global()
            pressure = DispatchSource.makeMemoryPressureSource(
                eventMask: [.warning, .critical], queue: queue)
            pressure.setEventHandler { [weak app] in try? app?.trim() }
            pressure.activate()
            // UIKit's name, without UIKit: extensions and tools have the engine, too.
            let background = Notification.Name("UIApplicationDidEnterBackgroundNotification")
            observer = NotificationCenter.default.addObserver(
                forName: background, object: nil, queue: nil
            ) { [weak app] _ in
                queue.async { try? app?.trim() }
            }
        }

        deinit {
            pressure.cancel()
            NotificationCenter.default.removeObserver(observer)
        }
    #else
        init(_ app: App) {}
    #endif
}

/// Keeps the process from being suspended until the app has answered.
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

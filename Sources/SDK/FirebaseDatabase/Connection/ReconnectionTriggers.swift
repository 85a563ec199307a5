// The events after which an attempt to connect may succeed at once: the app comes to the foreground, or the network
// changes. Google's SDK then resets the back-off and connects.
//
// The network is observed by NWPathMonitor on Apple's platforms, and by the kernel's announcements on Linux. Linux has no
// foreground; a program that has one may post the notification of that name.

import Dispatch
import Foundation

#if canImport(Network)
  import Network
#endif

/// Observes the events of one connection until it is released.
final class ReconnectionTriggers {
  /// The name of UIKit's notification. It is used by its text, since UIKit exists on some platforms only.
  static let foreground = Notification.Name("UIApplicationWillEnterForegroundNotification")

  private let foregroundObserver: any NSObjectProtocol
  #if canImport(Network)
    private let monitor = NWPathMonitor()
  #elseif canImport(Glibc)
    /// nil where the system denies the socket.
    let announcements: NetworkAnnouncements?
  #endif

  /// Begins to observe.
  ///
  /// - Parameter triggered: called on any thread.
  init(_ triggered: @escaping @Sendable () -> Void) {
    foregroundObserver = NotificationCenter.default.addObserver(
      forName: ReconnectionTriggers.foreground, object: nil, queue: nil
    ) { _ in triggered() }
    #if canImport(Network)
      monitor.pathUpdateHandler = { if $0.status == .satisfied { triggered() } }
      monitor.start(queue: DispatchQueue(label: "com.google.firebase.database.network"))
    #elseif canImport(Glibc)
      announcements = NetworkAnnouncements(triggered)
    #endif
  }

  deinit {
    NotificationCenter.default.removeObserver(foregroundObserver)
    #if canImport(Network)
      monitor.cancel()
    #endif
  }
}

// Observes the events that trigger a reconnection: the app comes to the foreground, or the network changes.
// As in Google's SDK, the client then resets the back-off and connects.
//
// NWPathMonitor observes the network on Apple's platforms, and `NetworkAnnouncements` on Linux. Linux has no
// foreground. A program on Linux that has a similar state may post the notification of that name.

import Dispatch
import Foundation

#if canImport(Network)
  import Network
#endif

/// Observes the events of one connection until it is released.
final class ReconnectionTriggers {
  /// The name of UIKit's notification as a string, because UIKit does not exist on all platforms.
  static let foreground = Notification.Name("UIApplicationWillEnterForegroundNotification")

  private let foregroundObserver: any NSObjectProtocol
  #if canImport(Network)
    private let monitor = NWPathMonitor()
  #elseif canImport(Glibc)
    /// The kernel's announcements; nil if the system denies the socket.
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

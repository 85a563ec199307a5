// The endpoint of the Realtime Database on a port. It holds the engine, the authentication and the limits
// that all connections of the port share.
//
// Invariant: handling a message changes no state of the endpoint, so connections do not contend for it.

import Access
package import Logging
import NIOConcurrencyHelpers
import NIOCore
package import Ports
package import RealtimeEngine
import RealtimeModel

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Serves the Realtime Database on a port over WebSockets, long polling, REST and event streams.
package final class RealtimeEndpoint: Sendable {
  let engine: RealtimeEngine
  let authentication: RealtimeAuthentication
  let limits: RealtimeEndpointLimits
  let defaultNamespace: String
  /// Whether the coverage of rules is recorded and reported.
  let recordsCoverage: Bool
  let log: Logger
  /// The wall clock, in milliseconds since 1970.
  let now: @Sendable () -> Int64

  /// The long-polling sessions.
  let longPolls: LongPollSessions

  private let groups = NIOLockedValueBox<[ObjectIdentifier: LoopSinkGroup]>([:])

  /// Creates the endpoint.
  ///
  /// - Parameters:
  ///   - defaultNamespace: the database of a request whose `ns` parameter and host name no database.
  ///   - recordsCoverage: whether the coverage of rules is recorded and reported; false in production.
  ///   - limits: the limits of one connection.
  ///   - now: the wall clock sent to clients, in milliseconds since 1970.
  package init(
    engine: RealtimeEngine, authentication: RealtimeAuthentication, defaultNamespace: String,
    recordsCoverage: Bool = false, limits: RealtimeEndpointLimits = .standard, log: Logger,
    now: @escaping @Sendable () -> Int64 = RealtimeEndpoint.systemTime
  ) {
    self.now = now
    self.engine = engine
    self.authentication = authentication
    self.defaultNamespace = defaultNamespace
    self.recordsCoverage = recordsCoverage
    self.limits = limits
    self.log = log
    longPolls = LongPollSessions(limit: limits.longPollSessions)
  }

  /// Returns the system's clock in milliseconds since 1970.
  package static func systemTime() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// The protocols of the Realtime Database's port: HTTP/1.1 with WebSockets, and HTTP/2.
  package func protocols(_ port: PortLimits = PortLimits()) -> PortProtocols {
    let service = RealtimeHTTPService(endpoint: self)
    return PortProtocols(http1: service.http1(port), http2: service.http2(port))
  }

  /// Returns the group of the connections of an event loop.
  func sinkGroup(of eventLoop: any EventLoop) -> LoopSinkGroup {
    groups.withLockedValue { groups in
      let id = ObjectIdentifier(eventLoop)
      if let group = groups[id] { return group }
      let group = LoopSinkGroup(eventLoop)
      groups[id] = group
      return group
    }
  }

  /// Whether a caller may see the name of a database. The emulator's web interface sends no credential, so callers with
  /// full access see it too.
  func mayList(_ namespace: String, _ caller: Principal) -> Bool {
    caller.acting(in: engine.project(of: namespace)).isAdministrator
      || engine.allowsEverything(caller, in: namespace)
  }

  /// Returns the namespace of a request, which is the name of its database. It is the `ns` parameter, else
  /// the first label of a host with three or more labels, else the default.
  func namespace(parameter: String?, host: String?) -> String {
    if let parameter, !parameter.isEmpty { return parameter }
    if let host {
      let name = host.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)[0]
      let labels = name.split(separator: ".")
      if labels.count >= 3, let first = labels.first { return first.lowercased() }
    }
    return defaultNamespace
  }
}

// How many files and sockets the process may have open, and who gets how many of them. Connections and the store's
// files share one limit of the system, and a store that cannot open its next log stops writing for good: a crowd of
// idle connections must never take its share.

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// The process's open files and their division.
public struct OpenFiles: Sendable, Equatable {
  /// What the system allows the process.
  public var limit: Int

  /// The division of a limit.
  public init(limit: Int) { self.limit = limit }

  /// The division of what the process may open now.
  public static var current: OpenFiles {
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return OpenFiles(limit: 1024) }
    return OpenFiles(limit: Int(clamping: limit.rlim_cur))
  }

  /// Raises the limit as far as the process may by itself: what a shell or a service starts with is often 1,024.
  public static func raiseLimit() {
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return }
    #if canImport(Darwin)
      limit.rlim_cur = min(limit.rlim_max, rlim_t(OPEN_MAX))
    #else
      limit.rlim_cur = limit.rlim_max
    #endif
    // Where it is not permitted the old limit holds, and is divided.
    _ = setrlimit(resource, &limit)
  }

  /// The tables that the store may keep open: enough for six gigabytes on disk, or a quarter of a terabyte where the limit is
  /// the usual million, since every one of them is a connection less.
  /// What is not open is opened when it is read.
  public var tables: Int { max(min(limit / 4, 768), limit / 32, 20) }

  /// The connections that all ports together may hold: what is left beside tables, logs and event loops.
  public var connections: Int { max(limit - tables - 80, 1) }

  #if canImport(Glibc)
    private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }
  #else
    private static var resource: Int32 { RLIMIT_NOFILE }
  #endif
}

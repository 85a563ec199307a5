// The open file budget divides the process's limit of open files between the store's files and client
// connections. A store that cannot open its next log file stops writing until a restart. Connections must
// therefore never use the store's share.

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// The division of the process's limit of open files.
public struct OpenFileBudget: Sendable, Equatable {
  /// The maximum number of open files of the process, as the system allows it.
  public var limit: Int

  /// Divides a limit.
  public init(limit: Int) { self.limit = limit }

  /// The division of the current limit of the process.
  public static var current: OpenFileBudget {
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return OpenFileBudget(limit: 1024) }
    return OpenFileBudget(limit: Int(clamping: limit.rlim_cur))
  }

  /// Raises the limit as far as the process may. Shells and services often start it with 1,024.
  public static func raiseLimit() {
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return }
    #if canImport(Darwin)
      limit.rlim_cur = min(limit.rlim_max, rlim_t(OPEN_MAX))
    #else
      limit.rlim_cur = limit.rlim_max
    #endif
    // A failure is ignored: the old limit then stays in effect.
    _ = setrlimit(resource, &limit)
  }

  /// The maximum number of tables that the store keeps open. A closed table is opened when it is read.
  ///
  /// Tables have 8 MiB: 768 tables are enough for 6 GB on disk. With the usual limit of a million files, the
  /// store may keep enough tables open for 250 GB. Each open table reduces the number of connections by one.
  public var tables: Int { max(min(limit / 4, 768), limit / 32, 20) }

  /// The maximum number of connections of all ports: the limit minus ``tables``, minus 80 files for logs and event
  /// loops.
  public var connections: Int { max(limit - tables - 80, 1) }

  #if canImport(Glibc)
    private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }
  #else
    private static var resource: Int32 { RLIMIT_NOFILE }
  #endif
}

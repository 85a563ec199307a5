// Reports the memory that this process may use: the machine's memory, the lowest limit of the control groups that contain the
// process, or half of its address space.
//
// Sources: cgroups(7), and the kernel's documentation of `memory.max` and
// `memory.high`, beyond which the kernel slows the process down (version 2), and `memory.limit_in_bytes` (version 1).

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// The memory that this process may use.
public enum SystemMemory {
  /// The size in bytes.
  public static var bytes: Int {
    let physical = sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE))
    // Code, thread stacks and fragmentation take address space too.
    let limits = [controlGroupLimit(read: contents), addressSpaceLimit.map { $0 / 2 }].compactMap(\.self)
    guard let limit = limits.min(), limit < physical else { return max(physical, 256 << 20) }
    return limit
  }

  /// The limit of the process's address space (`ulimit -v`) in bytes; nil without one.
  public static var addressSpaceLimit: Int? {
    var limit = rlimit()
    #if canImport(Glibc)
      let result = getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
    #else
      let result = getrlimit(RLIMIT_AS, &limit)
    #endif
    guard result == 0, let bytes = Int(exactly: limit.rlim_cur), bytes < Int.max / 2 else { return nil }
    return bytes
  }

  /// Returns the lowest memory limit of the control groups of this process, in bytes; nil for none.
  ///
  /// `/proc/self/cgroup` names the groups, one hierarchy per line, such as `0::/system.slice/hearth.service`. The limit of
  /// each ancestor applies too. A container may show the path of its host while only its own groups are mounted. Missing
  /// files are therefore skipped, and the root of the hierarchy is always read.
  /// - Parameter read: returns the contents of a file; nil if it cannot be read.
  static func controlGroupLimit(read: (String) -> String?) -> Int? {
    var limits = [Int]()
    func collect(_ root: String, _ path: Substring, _ files: String...) {
      var path = path
      while true {
        for file in files {
          let text = read("\(root)\(path == "/" ? "" : path)/\(file)")
          if let digits = text?.prefix(while: { $0.isNumber }), let limit = Int(digits) {
            limits.append(limit)
          }
        }
        guard !path.isEmpty, path != "/", let slash = path.lastIndex(of: "/") else { return }
        path = path[..<slash]
      }
    }
    for line in (read("/proc/self/cgroup") ?? "0::/").split(separator: "\n") {
      let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard fields.count == 3 else { continue }
      if fields[0] == "0", fields[1].isEmpty {
        collect("/sys/fs/cgroup", fields[2], "memory.max", "memory.high")
        // Systems that mount both versions mount version 2 here.
        collect("/sys/fs/cgroup/unified", fields[2], "memory.max", "memory.high")
      } else if fields[1].split(separator: ",").contains("memory") {
        collect("/sys/fs/cgroup/memory", fields[2], "memory.limit_in_bytes")
      }
    }
    return limits.min()
  }

  private static func contents(_ path: String) -> String? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 16 << 10)
    let count = fread(&bytes, 1, bytes.count, file)
    return String(decoding: bytes[..<count], as: UTF8.self)
  }
}

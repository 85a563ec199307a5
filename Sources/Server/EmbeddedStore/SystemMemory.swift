#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif

/// The memory that this process may use: the machine's memory, or the limit of its control group if that is lower.
public enum SystemMemory {
  /// The size in bytes.
  public static var bytes: Int {
    let physical = sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE))
    guard let limit = controlGroupLimit, limit < physical else { return max(physical, 256 << 20) }
    return limit
  }

  private static var controlGroupLimit: Int? {
    guard let file = fopen("/sys/fs/cgroup/memory.max", "r") else { return nil }
    defer { fclose(file) }
    var buffer = [CChar](repeating: 0, count: 32)
    guard fgets(&buffer, Int32(buffer.count), file) != nil else { return nil }
    let digits = buffer.prefix { $0 >= 48 && $0 <= 57 }
    return Int(String(decoding: digits.map { UInt8(bitPattern: $0) }, as: UTF8.self))
  }
}

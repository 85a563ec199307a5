// Converts RocksDB's errors, which are strings, to errors of the store.

internal import CRocksDB
internal import OrderedStore

/// Converts RocksDB's error strings.
enum RocksError {
  /// Calls RocksDB with an error pointer.
  /// - Throws: the error that RocksDB returned.
  @inline(__always)
  static func check(
    _ action: @autoclosure () -> String, _ call: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Void
  ) throws {
    var error: UnsafeMutablePointer<CChar>?
    call(&error)
    if let error { throw RocksError.error(action(), error) }
  }

  /// Converts and frees RocksDB's error string.
  static func error(_ action: String, _ description: UnsafeMutablePointer<CChar>) -> any Error {
    defer { rocksdb_free(description) }
    let message = withoutDirectories(String(cString: description))
    if message.hasPrefix("Result incomplete") { return MemoryTierMiss() }
    if message.hasPrefix("Corruption") { return StoreError(.corrupted, "\(action): \(message)") }
    return StoreError.unavailable("\(action): \(message)")
  }

  /// Replaces every path by its file name. Clients receive the message, and must not learn the machine's directories.
  static func withoutDirectories(_ message: String) -> String {
    func fileName(_ part: Substring) -> Substring? {
      guard part.hasPrefix("/"), let slash = part.lastIndex(of: "/") else { return nil }
      return part[part.index(after: slash)...]
    }
    // The message is split at colons and not at spaces, because paths may contain spaces.
    return message.split(separator: ": ", omittingEmptySubsequences: false).map { part in
      if let name = fileName(part) { return String(name) }
      return part.split(separator: " ", omittingEmptySubsequences: false).map { fileName($0) ?? $0 }
        .joined(separator: " ")
    }.joined(separator: ": ")
  }
}

// The rules for paths and keys of the app.

import FirebaseCore
import RealtimeModel

/// The rules for paths that an app writes.
enum PathRules {
  private static let rule = "Must be a non-empty string and not contain '.' '#' '$' '[' or ']'"

  /// Reads a path.
  static func path(_ text: String, allowsPriority: Bool = false) throws(InvalidValue) -> Path {
    let path = Path(text)
    for (index, key) in path.keys.enumerated() {
      if allowsPriority, key.isPriority, index == path.count - 1 { continue }
      guard ChildKey.isValid(key.text), key.text.utf8.count <= RealtimeLimits.standard.keyBytes else {
        throw InvalidValue(PathRules.rule, at: [text])
      }
    }
    return path
  }

  /// Reads a path for a reference; misuse stops the program.
  ///
  /// - Parameters:
  ///   - base: where the path begins; `.info` may follow the root alone.
  ///   - method: the name of the called method, for the message.
  static func reference(_ text: String, below base: Path, method: String) -> Path {
    let relative = Path(text)
    if base.isRoot, relative.first?.text == ".info",
      relative.keys.dropFirst().allSatisfy({ ChildKey.isValid($0.text) })
    {
      return relative
    }
    do throws(InvalidValue) {
      guard !text.isEmpty else { throw InvalidValue(PathRules.rule, at: []) }
      let whole = base.appending(try path(text))
      guard whole.count <= ValueReader.deepest else {
        throw InvalidValue("Max object depth exceeded: \(ValueReader.deepest)", at: [])
      }
      return whole
    } catch {
      usageException("InvalidPathValidation", "(\(method)) \(error.message)")
    }
  }

  /// Stops the program when an app would write below `.info`.
  static func checkWritable(_ path: Path, method: String) {
    if path.first?.text == ".info" {
      usageException(
        "WritablePathValidation", "(\(method)) failed to path \(path.absolute): .info cannot be written")
    }
  }
}

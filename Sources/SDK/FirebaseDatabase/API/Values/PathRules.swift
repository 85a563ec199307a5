// The rules for paths and keys that an app passes to the SDK.

import FirebaseCore
import RealtimeModel

/// Checks the paths that an app passes to the SDK.
enum PathRules {
  private static let rule = "Must be a non-empty string and not contain '.' '#' '$' '[' or ']'"

  /// Converts a string to a path.
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

  /// Converts a string to the path of a reference. An invalid path stops the program.
  ///
  /// - Parameters:
  ///   - base: the path to which the string is relative. `.info` is allowed only directly below the root.
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
      guard whole.count <= ValueReader.maximumDepth else {
        throw InvalidValue("Max object depth exceeded: \(ValueReader.maximumDepth)", at: [])
      }
      return whole
    } catch {
      usageException("InvalidPathValidation", "(\(method)) \(error.message)")
    }
  }

  /// Stops the program if the app writes below `.info`.
  static func checkWritable(_ path: Path, method: String) {
    if path.first?.text == ".info" {
      usageException(
        "WritablePathValidation", "(\(method)) failed to path \(path.absolute): .info cannot be written")
    }
  }
}

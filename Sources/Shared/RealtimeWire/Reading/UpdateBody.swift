// Reads the body of an update over REST: the same object of relative paths as in the WebSocket protocol.

import JSON
public import RealtimeModel

/// Reads the bodies of updates.
public enum UpdateBody {
  /// Reads an object of relative paths and values; `nil` for `null`, which deletes the location.
  ///
  /// - Throws: ``RealtimeError`` with status `failure` and Firebase's message for any other JSON.
  public static func read(
    _ bytes: UnsafeRawBufferPointer, limits: RealtimeLimits = .standard
  ) throws(RealtimeError) -> [(Path, Node)]? {
    do throws(JSONError) {
      var reader = try JSONReader(unsafeBytes: bytes, limits: limits.json)
      var children: [(Path, Node)]?
      if try !reader.consumeNull() { children = try reader.children(.write, limits) }
      try reader.finish()
      return children
    } catch {
      throw error.realtimeError(in: bytes)
    }
  }
}

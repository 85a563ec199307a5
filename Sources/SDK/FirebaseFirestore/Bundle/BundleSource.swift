// The bundle source: reads bytes from a stream of the app.

import FirestoreModel
import Foundation

/// A stream with a bundle or an index configuration. It is safe to pass between threads: the app does not use
/// the stream after it has passed it to the SDK. The SDK uses it on only one queue.
struct BundleSource: @unchecked Sendable {
  static let chunkBytes = 64 << 10

  let stream: InputStream

  func open() { stream.open() }
  func close() { stream.close() }

  /// The next bytes; nil at the end.
  func read() throws(FirestoreError) -> ArraySlice<UInt8>? {
    var chunk = [UInt8](repeating: 0, count: BundleSource.chunkBytes)
    let count = chunk.withUnsafeMutableBufferPointer { buffer in
      buffer.baseAddress.map { stream.read($0, maxLength: buffer.count) } ?? 0
    }
    guard count >= 0, count <= chunk.count else {
      let reason = stream.streamError.map { "\($0)" } ?? "no reason is known"
      throw FirestoreError(.dataLoss, "The stream cannot be read: \(reason).")
    }
    return count == 0 ? nil : chunk[..<count]
  }
}

// The memory of results that the server holds until their client has read them. A read reserves memory before it reads a page
// of results from the store, and releases it when the client has accepted the page.
//
// The first page is small. Pages grow while the client reads them, so the server reads and holds little for a client that does
// not read.

public import FirestoreModel
import Locking

/// The error of a read that found no free memory in time, because its client has not read earlier results.
public struct ResultMemoryExhausted: Error {
  /// The error for the client.
  public var error: FirestoreError

  /// Makes the error.
  /// - Parameter text: the text for the client.
  public init(_ text: String) { error = .resourceExhausted(text) }
}

/// The memory that one client's results may use. Usable from any thread.
public protocol ResultMemory: Sendable {
  /// Reserves memory. Waits while too little is free.
  /// - Parameter bytes: the number of bytes.
  /// - Throws: ``ResultMemoryExhausted`` after a time limit; `CancellationError` after the client has disconnected.
  func reserve(_ bytes: Int) async throws

  /// Reserves memory without waiting. Returns false, and reserves nothing, if too little is free.
  func reserveNow(_ bytes: Int) -> Bool

  /// Changes reserved bytes from `old` to `new`. Growth is not limited.
  func resize(from old: Int, to new: Int)
}

/// The pages of one read: their size, and the memory of the current page.
final class ResultPages: Sendable {
  private struct State {
    /// Maximum bytes of documents on the next page; the last document may exceed them.
    var maximumBytes: Int
    var reserved = 0
  }

  private let memory: (any ResultMemory)?
  private let documentBytes: Int
  private let state: Guarded<State>

  /// - Parameters:
  ///   - memory: the account from which pages reserve memory; nil for a client in this process, whose pages have the
  ///     maximum size.
  ///   - documentBytes: maximum bytes of one document.
  init(_ memory: (any ResultMemory)?, documentBytes: Int) {
    self.memory = memory
    self.documentBytes = documentBytes
    let first = memory == nil ? EngineLimits.maximumPageBytes : EngineLimits.minimumPageBytes
    state = Guarded(State(maximumBytes: first))
  }

  deinit { resize(to: 0) }

  /// Maximum bytes of documents on the next page; the last document may exceed them.
  var maximumBytes: Int { state.withLock { $0.maximumBytes } }

  /// Reserves memory for the next page, and waits for it. The memory of the previous page is released first.
  func reserve() async throws {
    guard let memory else { return }
    resize(to: 0)
    let bytes = ResultPages.heldBytes(maximumBytes + documentBytes, count: 0)
    try await memory.reserve(bytes)
    state.withLock { $0.reserved = bytes }
  }

  /// Adjusts the reservation to the size of the page that was read.
  /// - Parameters:
  ///   - bytes: bytes of the page's documents.
  ///   - count: the number of documents.
  ///   - otherBytes: bytes of other results that the read holds, such as sorted ones.
  func hold(_ bytes: Int, count: Int, otherBytes: Int = 0) {
    guard memory != nil else { return }
    resize(to: ResultPages.heldBytes(bytes, count: count) + otherBytes)
  }

  /// Called when the client has accepted the page. The next page may be larger.
  func markAccepted() {
    guard memory != nil else { return }
    resize(to: 0)
    state.withLock { $0.maximumBytes = min(2 * $0.maximumBytes, EngineLimits.maximumPageBytes) }
  }

  private func resize(to bytes: Int) {
    guard let memory else { return }
    precondition(bytes >= 0, "invariant: a read holds no negative number of bytes")
    let reserved = state.withLock { state in
      defer { state.reserved = bytes }
      return state.reserved
    }
    if reserved != bytes { memory.resize(from: reserved, to: bytes) }
  }

  /// The approximate memory of a page: its documents, and once more their encoding in the response.
  private static func heldBytes(_ bytes: Int, count: Int) -> Int { 2 * bytes + count * documentOverhead }

  /// The approximate memory of a document's object and name, in bytes.
  private static let documentOverhead = 512
}

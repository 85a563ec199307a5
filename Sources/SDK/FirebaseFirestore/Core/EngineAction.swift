// The actions that the sync engine requests. The engine performs no I/O, reads no clock, and gets all
// randomness from a seed.

import FirestoreModel

/// One of the two long-lived streams.
enum StreamKind: Hashable, Sendable {
  case watch, write
}

/// A timer of the engine. At most one timer of each value runs at a time.
enum EngineTimer: Hashable, Sendable {
  /// Closes a stream that is not needed any more.
  case idle(StreamKind)
  /// Ends the delay before a stream is opened again.
  case backoff(StreamKind)
  /// Ends the wait for a connection, and goes offline.
  case onlineState
  /// Evicts unused documents if the cache is too large.
  case garbage
  /// Repeats an operation that failed in the cache.
  case recovery
  /// Removes from the views the writes that a damaged cache has lost.
  case lostWrites
  /// Copies the cache to a new file after a failed sync.
  case repair
}

/// Identifies a completion that the client calls when the engine requests it.
struct CompletionID: Hashable, Sendable {
  let number: Int
}

/// A request on an open stream.
enum StreamRequest: Equatable, Sendable {
  case addTarget(TargetData)
  case removeTarget(TargetID)
  case handshake
  case writes([Write])
}

enum EngineAction: Equatable, Sendable {
  case snapshot(ListenerID, ViewSnapshot)
  case failure(ListenerID, FirestoreError)
  case inSync(ListenerID)
  case completed(CompletionID, FirestoreError?)
  /// Opens a stream. Its events carry this number.
  case connect(StreamKind, Int)
  case disconnect(StreamKind, Int)
  case send(StreamKind, StreamRequest)
  case startTimer(EngineTimer, seconds: Double)
  case stopTimer(EngineTimer)
  /// Fetches a new token, because the server rejected the last one.
  case renewToken
  /// Logs a warning for the developer.
  case warn(String)
}

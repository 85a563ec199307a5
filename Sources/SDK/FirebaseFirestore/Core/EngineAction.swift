// The actions that the sync engine requests. The engine does no I/O, reads no clock, and uses only the seed that it is
// given.

import FirestoreModel

/// One of the two long-lived streams.
enum StreamKind: Hashable, Sendable {
  case watch, write
}

/// A timer of the engine; each runs at most once at a time.
enum EngineTimer: Hashable, Sendable {
  /// Closes a stream that nothing needs any more.
  case idle(StreamKind)
  /// Ends the wait before a stream is opened again.
  case backoff(StreamKind)
  /// Gives up waiting for a connection, and goes offline.
  case onlineState
  /// Evicts unused documents if the cache is too large.
  case garbage
  /// Repeats an operation that failed in the cache.
  case recovery
  /// Removes from the views the writes that a damaged cache has lost.
  case lostWrites
  /// Moves the cache to a new file after a failed sync.
  case repair
}

/// Names a completion that waits for the engine.
struct CompletionID: Hashable, Sendable {
  let number: Int
}

/// A request on a stream that is open.
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
  /// Opens a stream; its events carry the number.
  case connect(StreamKind, Int)
  case disconnect(StreamKind, Int)
  case send(StreamKind, StreamRequest)
  case startTimer(EngineTimer, seconds: Double)
  case stopTimer(EngineTimer)
  /// Fetches a new token, because the server rejected the last one.
  case renewToken
  /// Something the developer should read.
  case warn(String)
}

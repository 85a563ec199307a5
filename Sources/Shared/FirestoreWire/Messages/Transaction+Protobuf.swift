// Converts transaction options and errors between the generated messages and the model.

public import FirestoreModel
public import FirestoreProtobuf
import SwiftProtobuf

extension TransactionOptions {
  /// The options in a message.
  ///
  /// - Parameter fallback: the options if the message names no mode: read-write for BeginTransaction, read-only for
  ///   reads that begin a transaction.
  public init(_ message: Google_Firestore_V1_TransactionOptions, or fallback: TransactionOptions) {
    switch message.mode {
    case .readWrite(let options):
      let mode: ConcurrencyMode
      switch options.concurrencyMode {
      case .optimistic: mode = .optimistic
      case .pessimistic: mode = .pessimistic
      default: mode = .unspecified
      }
      let retried = [UInt8](options.retryTransaction)
      self = .readWrite(retrying: retried.isEmpty ? nil : retried, concurrency: mode)
    case .readOnly(let options):
      if case .readTime(let time)? = options.consistencySelector {
        self = .readOnly(readTime: Timestamp(time))
      } else {
        self = .readOnly()
      }
    case nil: self = fallback
    }
  }
}

extension Google_Firestore_V1_TransactionOptions {
  /// The message for options.
  public init(_ options: TransactionOptions) {
    self.init()
    switch options {
    case .readWrite(let retried, let mode):
      readWrite = .init()
      if let retried { readWrite.retryTransaction = retried.messageBytes }
      switch mode {
      case .unspecified: break
      case .optimistic: readWrite.concurrencyMode = .optimistic
      case .pessimistic: readWrite.concurrencyMode = .pessimistic
      }
    case .readOnly(let time):
      readOnly = .init()
      if let time { readOnly.readTime = Google_Protobuf_Timestamp(time) }
    }
  }
}

extension FirestoreError {
  /// The error in a status message; nil for success.
  public init?(_ message: Google_Rpc_Status) {
    if message.code == StatusCode.ok.rawValue { return nil }
    self.init(StatusCode(rawValue: message.code), message.message)
  }
}

extension Google_Rpc_Status {
  /// The message for an error.
  public init(_ error: FirestoreError) {
    self.init()
    code = error.code.rawValue
    message = error.message
  }
}

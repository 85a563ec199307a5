// The watch stream and write stream of a client: sends the engine's messages, and passes the server's
// messages to the engine.

import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import Foundation
import NIOCore
import SwiftProtobuf

extension FirestoreClient {
  func connect(_ kind: StreamKind, _ number: Int) {
    let call = datastore.open(kind) { [weak self] call, event in
      self?.event { client in
        client.received(event, kind, number)
        if case .message = event { call.messageHandled() }
      }
    }
    calls[kind] = (number, call)
  }

  func send(_ kind: StreamKind, _ request: StreamRequest) {
    FirestoreLog.debug("Sending on the \(kind) stream: \(request)")
    guard let call = calls[kind]?.call else { return }
    do {
      switch request {
      case .addTarget(let data):
        call.send(
          try Google_Firestore_V1_ListenRequest(adding: data, database: database).serializedBytes())
      case .removeTarget(let id):
        call.send(
          try Google_Firestore_V1_ListenRequest(removing: id, database: database).serializedBytes())
      case .handshake: call.send(try writeRequests.handshake(with: database).serializedBytes())
      case .writes(let writes): call.send(try writeRequests.batch(writes).serializedBytes())
      }
    } catch {
      // Every message of the model can be encoded. If encoding failed nevertheless, later messages must still
      // be sent.
      FirestoreLog.warning("I-FST000005", "A request could not be encoded: \(error)")
    }
  }

  private func received(_ event: CallEvent, _ kind: StreamKind, _ number: Int) {
    guard calls[kind]?.number == number else { return }
    switch event {
    case .opened:
      if kind == .watch { engine.watchStreamOpened(number) } else { engine.writeStreamOpened(number) }
    case .message(let buffer):
      do throws(FirestoreError) {
        if kind == .watch {
          try watchReceived(buffer, number)
        } else {
          try writeReceived(buffer, number)
        }
      } catch {
        // An invalid message ends the stream. The next stream resumes from the last consistent state.
        calls.removeValue(forKey: kind)?.call.cancel()
        closed(kind, number, .internalError("The server's message cannot be parsed: \(error.message)"))
      }
    case .ended(let status):
      calls[kind] = nil
      // A server that ends a stream without an error is restarting.
      closed(kind, number, status.code == .ok ? .unavailable("The server ended the stream.") : status)
    }
  }

  private func closed(_ kind: StreamKind, _ number: Int, _ error: FirestoreError) {
    FirestoreLog.debug("The \(kind) stream ended: \(error)")
    switch kind {
    case .watch: engine.watchStreamClosed(number, error)
    case .write: engine.writeStreamClosed(number, error)
    }
  }

  private func parse<M: Message>(_ type: M.Type, _ buffer: ByteBuffer) throws(FirestoreError) -> M {
    do {
      return try M(serializedBytes: Array(buffer.readableBytesView))
    } catch {
      throw .internalError("\(error)")
    }
  }

  private func watchReceived(_ buffer: ByteBuffer, _ number: Int) throws(FirestoreError) {
    let message = try parse(Google_Firestore_V1_ListenResponse.self, buffer)
    guard let change = try WatchChange(message, in: database) else { return }
    FirestoreLog.debug("Watch: \(change)")
    engine.watchReceived(number, change)
  }

  private func writeReceived(_ buffer: ByteBuffer, _ number: Int) throws(FirestoreError) {
    let message = try parse(Google_Firestore_V1_WriteResponse.self, buffer)
    writeRequests.recordResponse(message)
    guard engine.writing.hasHandshake else {
      engine.writeHandshakeDone(number)
      return
    }
    var results: [WriteResult] = []
    for result in message.writeResults { results.append(try WriteResult(result)) }
    engine.writeAcknowledged(number, results: results, commitTime: ModelTimestamp(message.commitTime))
  }
}

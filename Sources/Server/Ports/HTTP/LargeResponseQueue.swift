// Queues the calls of one connection until there is capacity for their responses.
//
// Invariants
//   1. No call starts while the connection's unread responses exceed their limit.
//   2. The number of running calls with large responses stays within its limit. The expected bytes of each are reserved
//      in the server's memory.

import NIOCore

/// The calls of one connection that wait for capacity. Confined to its event loop.
package final class LargeResponseQueue {
  private final class Call {
    let exchange: HTTPExchange
    let expectedBytes: Int
    let start: () -> Void
    var hasStarted = false

    init(_ exchange: HTTPExchange, _ expectedBytes: Int, _ start: @escaping () -> Void) {
      self.exchange = exchange
      self.expectedBytes = expectedBytes
      self.start = start
    }
  }

  private unowned let connection: HTTPConnection
  private var runningCount = 0
  private var waiting: [Call] = []

  init(_ connection: HTTPConnection) { self.connection = connection }

  /// Starts a call when there is capacity for its response, now or later. The end of the exchange removes it.
  /// - Parameter expectedBytes: the estimated size of the response; 0 for a small one. A small call waits only while
  ///   the client does not read, and never for other calls. A call on which other calls depend, such as the commit of a
  ///   transaction whose locks they wait for, must therefore pass 0. Queued behind those calls it would never start.
  package func start(_ exchange: HTTPExchange, expectedBytes: Int, _ start: @escaping () -> Void) {
    let call = Call(exchange, expectedBytes, start)
    waiting.append(call)
    startNext()
    exchange.onEnd { self.end(call) }
  }

  /// Starts the calls for which there is capacity.
  func startNext() {
    while let index = waiting.firstIndex(where: hasCapacity) {
      let call = waiting.remove(at: index)
      let isFirst = connection.unreadResponseBytes == 0 && runningCount == 0
      guard connection.memory.reserve(call.expectedBytes, leavingRoom: !isFirst) else {
        call.exchange.respond(
          connection.service.response(to: .outOfMemory(connection.memory.budget.refusal)))
        continue
      }
      call.hasStarted = true
      if call.expectedBytes > 0 { runningCount += 1 }
      call.start()
    }
  }

  private func hasCapacity(for call: Call) -> Bool {
    let limits = connection.port.http2
    return connection.unreadResponseBytes < limits.maximumQueuedResponseBytes
      && (call.expectedBytes == 0 || runningCount < limits.maximumLargeReads)
  }

  private func end(_ call: Call) {
    guard call.hasStarted else { return waiting.removeAll { $0 === call } }
    if call.expectedBytes > 0 { runningCount -= 1 }
    precondition(runningCount >= 0, "invariant: a call ends once")
    connection.memory.release(call.expectedBytes)
    startNext()
  }
}

// Bodies that are taken while they arrive, and answers that are written while they are read.
//
// Invariants: of a body no more is read from the peer than its taker keeps up with; of an answer one piece waits for the
// peer at a time; what ends the connection ends both.

import Logging
import NIOCore
import NIOHTTP1
import RealtimeEngine
import RealtimeModel

/// A body that is taken while it arrives.
final class ArrivingBody {
  let queue: BodyQueue
  var bytes = 0
  let limit: Int

  init(_ queue: BodyQueue, limit: Int) {
    self.queue = queue
    self.limit = limit
  }
}

extension RealtimeHTTPHandler {
  /// What a request's body may be, from its head.
  func expectBody(_ head: HTTPRequestHead) {
    arriving = nil
    streamable = nil
    mostBodyBytes = endpoint.limits.data.restWriteBytes
    guard head.method != .GET, head.method != .HEAD, let target = try? RequestTarget(head.uri),
      ["/.json", "/.upload"].contains(target.rawPath) || !target.rawPath.hasPrefix("/."),
      let request = try? RESTRequest(head, target, endpoint),
      request.mayImport, endpoint.engine.allowsEverything(request.caller)
    else { return }
    streamable = request
    mostBodyBytes = request.mostBodyBytes(endpoint.limits)
  }

  /// Begins to take a body while it arrives; what has arrived comes first.
  func beginArriving(_ request: RESTRequest, _ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
    let eventLoop = context.eventLoop
    let this = NIOLoopBound(self, eventLoop: eventLoop)
    let queue = BodyQueue {
      eventLoop.execute { this.value.readOn() }
    } taken: { bytes in
      eventLoop.execute { this.value.giveBack(bytes) }
    }
    let body = ArrivingBody(queue, limit: mostBodyBytes)
    arriving = body
    body.bytes = bytes.readableBytes
    queue.add(bytes)
    let service = RESTService(endpoint: endpoint)
    let bound = NIOLoopBound((self, body), eventLoop: eventLoop)
    _ = RequestTasks.start {
      let response = await service.write(request, queue)
      eventLoop.execute {
        let (this, body) = bound.value
        this.arrived(body, response)
      }
    }
  }

  /// Takes another piece of a body that is being taken.
  func receive(_ bytes: ByteBuffer, of body: ArrivingBody) {
    body.bytes += bytes.readableBytes
    guard body.bytes <= body.limit else {
      body.queue.finish(.broken)
      arriving = nil
      return refuse(RESTError(.writeTooBig))
    }
    do { try hold(bytes.readableBytes) } catch { return refuse(error) }
    body.queue.add(bytes)
  }

  /// Answers a body that was taken, or refused before it had arrived.
  private func arrived(_ body: ArrivingBody, _ response: RESTResponse) {
    guard arriving === body else { return }
    arriving = nil
    readOn()
    if !requestEnded { isRefusing = true }
    answer(response)
  }

  func read(context: ChannelHandlerContext) {
    if arriving?.queue.isFull == true { readIsHeld = true } else { context.read() }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { events?.resume() }
    context.fireChannelWritabilityChanged()
  }

  private func readOn() {
    guard readIsHeld else { return }
    readIsHeld = false
    context?.read()
  }

  // MARK: Answers

  /// Writes the beginning of an answer, and the rest as the peer takes it.
  func deliver(
    _ head: HTTPResponseHead, _ first: ByteBuffer?, _ rest: RESTStream, _ keepAlive: Bool,
    _ context: ChannelHandlerContext
  ) {
    let delivery = AnswerDelivery(context.channel, isStream: isHTTP2, shared)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    // Its memory was taken when it was counted.
    write(first ?? ByteBuffer(), rest, rest.progress, delivery, keepAlive, context)
  }

  /// Writes a piece that is counted, and asks for the next once it has gone out.
  private func write(
    _ piece: ByteBuffer, _ rest: RESTStream, _ progress: StreamProgress, _ delivery: AnswerDelivery,
    _ keepAlive: Bool, _ context: ChannelHandlerContext
  ) {
    var progress = progress
    progress.add(piece.readableBytes)
    let eventLoop = context.eventLoop
    // In parts, so that a slow reader is seen to read.
    var written = eventLoop.makeSucceededVoidFuture()
    for part in AnswerDelivery.pieces(of: piece) {
      let promise = eventLoop.makePromise(of: Void.self)
      written = promise.futureResult
      delivery.count(part.readableBytes, written)
      context.write(wrapOutboundOut(.body(.byteBuffer(part))), promise: promise)
    }
    let (held, memory) = (piece.readableBytes, memory)
    written.assumeIsolated().whenComplete { _ in memory.release(held) }
    let bound = NIOLoopBound((self, delivery), eventLoop: eventLoop)
    written.whenSuccess { [progress] in
      _ = RequestTasks.start {
        let outcome: Result<ByteBuffer?, any Error>
        do { outcome = .success(try await rest.next()) } catch { outcome = .failure(error) }
        eventLoop.execute {
          let (this, delivery) = bound.value
          this.goOn(outcome, rest, progress, delivery, keepAlive)
        }
      }
    }
    context.flush()
    delivery.watch()
  }

  private func goOn(
    _ next: Result<ByteBuffer?, any Error>, _ rest: RESTStream, _ progress: StreamProgress,
    _ delivery: AnswerDelivery, _ keepAlive: Bool
  ) {
    guard let context else { return }
    switch next {
    case .success(let piece?):
      guard memory.reserve(piece.readableBytes) else {
        endpoint.log.info("an answer was cut off: the server holds as many bytes as it may")
        return context.close(promise: nil)
      }
      write(piece, rest, progress, delivery, keepAlive, context)
    case .success(nil):
      progress.finish()
      finishAnswer(keepAlive, requestEnded)
    case .failure(let error):
      // An answer that has begun can only be cut off.
      endpoint.log.error("an answer was cut off: \(error)")
      context.close(promise: nil)
    }
  }
}

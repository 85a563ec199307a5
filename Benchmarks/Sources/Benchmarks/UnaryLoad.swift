// A gRPC client with minimal cost: consecutive unary calls, with HTTP/2 frames written and read by hand. The
// load generator shares the processors with the server, so its own cost reduces the server's throughput. NIOHTTP2's
// client, which has a channel for each call, took a third as much processor time as the server.

import NIOConcurrencyHelpers
import NIOCore
import NIOHPACK
import NIOPosix

/// The counters of the connections of one measurement.
final class UnaryTally: Sendable {
  let done = SharedCounter()
  let failed = SharedCounter()
  private let firstFailure = NIOLockedValueBox("")
  private let isStopped = NIOLockedValueBox(false)
  /// The latencies in microseconds; nil if they are not measured.
  private let times: NIOLockedValueBox<[Double]>?

  /// - Parameter measuresLatency: whether the time of each call is kept.
  init(measuresLatency: Bool = false) { times = measuresLatency ? NIOLockedValueBox([]) : nil }

  /// The latencies of the calls since the last call of this method, in microseconds.
  func takeTimes() -> [Double] {
    times?.withLockedValue { times in
      defer { times = [] }
      return times
    } ?? []
  }

  func finish(startedAt start: NIODeadline?) {
    done.add()
    guard let start, let times else { return }
    let elapsed = Double((NIODeadline.now() - start).nanoseconds) / 1000
    times.withLockedValue { $0.append(elapsed) }
  }

  var measuresLatency: Bool { times != nil }

  var failure: String { firstFailure.withLockedValue { $0 } }
  var stopped: Bool { isStopped.withLockedValue { $0 } }

  /// No call starts after this time.
  func stop() { isStopped.withLockedValue { $0 = true } }

  func fail(_ reason: String) {
    failed.add()
    firstFailure.withLockedValue { if $0.isEmpty { $0 = reason } }
  }
}

/// A connection that keeps `depth` calls of one method in flight until its tally is stopped.
struct UnaryLoad: Sendable {
  private let channel: any Channel

  /// Connects and starts. `body` returns the framed request of each call, by its number on this connection.
  static func start(
    port: Int, on group: any EventLoopGroup, path: String, depth: Int, tally: UnaryTally,
    body: @escaping @Sendable (_ call: Int) -> ByteBuffer
  ) async throws -> UnaryLoad {
    let channel = try await ClientBootstrap(group: group)
      .channelOption(.socketOption(.tcp_nodelay), value: 1)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(
            UnaryLoadHandler(path: path, depth: depth, tally: tally, body: body))
        }
      }
      .connect(host: "127.0.0.1", port: port).get()
    return UnaryLoad(channel: channel)
  }

  func close() async { try? await channel.close() }
}

/// The part of RFC 9113 that a client of short calls needs.
private final class UnaryLoadHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private static let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
  /// The maximum window, so that responses are never held back.
  private static let window = UInt32(Int32.max)
  private static let windowUpdateBytes = 1 << 20

  private enum Kind: UInt8 {
    case data = 0
    case headers = 1
    case reset = 3
    case settings = 4
    case ping = 6
    case goAway = 7
    case windowUpdate = 8
  }

  private let path: String
  private let depth: Int
  private let tally: UnaryTally
  private let body: @Sendable (Int) -> ByteBuffer
  private var encoder = HPACKEncoder(allocator: ByteBufferAllocator())
  private var decoder = HPACKDecoder(allocator: ByteBufferAllocator())
  /// The headers of every call but the first. After the first call they are in the dynamic table.
  private var repeatedHeaders: ByteBuffer?
  /// The status in each header block that only references table entries. Emptied when the table changes.
  private var statusOfBlock: [[UInt8]: String?] = [:]
  private var input = ByteBuffer()
  private var output = ByteBuffer()
  private var nextStream: UInt32 = 1
  /// The start of each call in flight, by stream, if latencies are measured.
  private var starts: [UInt32: NIODeadline] = [:]
  private var calls = 0
  /// The remaining flow-control window for requests.
  private var sendWindow = 65_535
  /// The received bytes that no WINDOW_UPDATE has returned yet.
  private var unacknowledgedBytes = 0

  init(path: String, depth: Int, tally: UnaryTally, body: @escaping @Sendable (Int) -> ByteBuffer) {
    self.path = path
    self.depth = depth
    self.tally = tally
    self.body = body
  }

  func channelActive(context: ChannelHandlerContext) {
    output.writeString(Self.preface)
    frame(.settings, stream: 0, length: 6)
    output.writeInteger(UInt16(4))  // SETTINGS_INITIAL_WINDOW_SIZE
    output.writeInteger(Self.window)
    sendWindowUpdate(Int(Self.window) - 65_535)
    do {
      for _ in 0..<depth { try call() }
    } catch {
      end("\(error)", context)
    }
    flush(context)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    if input.readableBytes == 0 { input = bytes } else { input.writeBuffer(&bytes) }
    do {
      while try readFrame() {}
    } catch {
      end("\(error)", context)
    }
    if input.readableBytes == 0 { input = ByteBuffer() }
  }

  func channelReadComplete(context: ChannelHandlerContext) { flush(context) }

  func channelInactive(context: ChannelHandlerContext) {
    if !tally.stopped { tally.fail("no answer, the connection is gone") }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { end("\(error)", context) }

  private func end(_ reason: String, _ context: ChannelHandlerContext) {
    if !tally.stopped { tally.fail(reason) }
    context.close(promise: nil)
  }

  private func flush(_ context: ChannelHandlerContext) {
    guard output.readableBytes > 0 else { return }
    context.writeAndFlush(wrapOutboundOut(output), promise: nil)
    output = ByteBuffer()
  }

  private func frame(_ kind: Kind, flags: UInt8 = 0, stream: UInt32, length: Int) {
    output.writeInteger(UInt32(length) << 8 | UInt32(kind.rawValue))
    output.writeInteger(flags)
    output.writeInteger(stream)
  }

  private func sendWindowUpdate(_ bytes: Int) {
    frame(.windowUpdate, stream: 0, length: 4)
    output.writeInteger(UInt32(bytes))
  }

  /// The headers of the next call. The first call's headers fill the table; those of the second are reused for
  /// all others.
  private func headers() throws -> ByteBuffer {
    if let repeatedHeaders { return repeatedHeaders }
    var block = ByteBuffer()
    try encoder.encode(headers: requestHeaders(path), to: &block)
    if nextStream > 1 { repeatedHeaders = block }
    return block
  }

  private func call() throws {
    guard !tally.stopped else { return }
    var block = try headers()
    var message = body(calls)
    calls += 1
    sendWindow -= message.readableBytes
    guard message.readableBytes <= 16_384, sendWindow >= 0 else {
      throw BenchmarkFailure("a request of \(message.readableBytes) bytes is too large for this load")
    }
    if tally.measuresLatency { starts[nextStream] = .now() }
    frame(.headers, flags: 0x4, stream: nextStream, length: block.readableBytes)
    output.writeBuffer(&block)
    frame(.data, flags: 0x1, stream: nextStream, length: message.readableBytes)
    output.writeBuffer(&message)
    nextStream += 2
  }

  /// Reads one frame.
  /// - Returns: false if it is incomplete.
  private func readFrame() throws -> Bool {
    guard let head = input.getInteger(at: input.readerIndex, as: UInt32.self),
      let flags = input.getInteger(at: input.readerIndex + 4, as: UInt8.self),
      let stream = input.getInteger(at: input.readerIndex + 5, as: UInt32.self)
    else { return false }
    let length = Int(head >> 8)
    guard input.readableBytes >= 9 + length else { return false }
    input.moveReaderIndex(forwardBy: 9)
    guard var payload = input.readSlice(length: length) else { return false }
    switch Kind(rawValue: UInt8(truncatingIfNeeded: head)) {
    case .data:
      unacknowledgedBytes += length
      if unacknowledgedBytes >= Self.windowUpdateBytes {
        sendWindowUpdate(unacknowledgedBytes)
        unacknowledgedBytes = 0
      }
    case .headers:
      guard flags & 0x2C == 0x4 else {
        throw BenchmarkFailure("headers with flags \(flags) are not read here")
      }
      let status = try status(in: &payload)
      guard flags & 0x1 != 0 else { break }
      let start = starts.removeValue(forKey: stream)
      if status == "0" { tally.finish(startedAt: start) } else { tally.fail("status \(status ?? "unknown")") }
      try call()
    case .settings where flags & 0x1 == 0:
      frame(.settings, flags: 0x1, stream: 0, length: 0)
    case .ping where flags & 0x1 == 0:
      frame(.ping, flags: 0x1, stream: 0, length: length)
      output.writeBuffer(&payload)
    case .windowUpdate:
      sendWindow += Int(payload.readInteger(as: UInt32.self) ?? 0)
    case .reset, .goAway:
      throw BenchmarkFailure("the server ended a call or the connection")
    default:
      break
    }
    return true
  }

  /// The status of the call, with its message unless it is 0; nil if the headers contain none.
  private func status(in block: inout ByteBuffer) throws -> String? {
    let isRepeated = block.readableBytesView.allSatisfy { $0 >= 0x80 }
    let key = isRepeated ? Array(block.readableBytesView) : []
    if isRepeated, let cached = statusOfBlock[key] { return cached }
    let headers = try decoder.decodeHeaders(from: &block)
    let status = headers.first(name: "grpc-status").map {
      $0 == "0" ? $0 : "\($0): \(headers.first(name: "grpc-message") ?? "")"
    }
    if isRepeated { statusOfBlock[key] = status } else { statusOfBlock = [:] }
    return status
  }
}

// Computes powers and distances as the Java library of the hosted product does.

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Mathematical functions of the platform's library.
enum RuleMath {
  /// The power of two floats, as Java's `Math.pow`: it differs from C for ±1 with an infinite or NaN exponent.
  static func power(_ base: Double, _ exponent: Double) -> Double {
    if exponent.isNaN || (base.magnitude == 1 && exponent.isInfinite) { return .nan }
    return pow(base, exponent)
  }

  /// The distance of two points on a sphere with the Earth's mean radius, in metres.
  static func distance(_ a: (latitude: Double, longitude: Double), _ b: (latitude: Double, longitude: Double))
    -> Double
  {
    let radius = 6_371_010.0
    let degree = Double.pi / 180
    let latitude = sin((b.latitude - a.latitude) * degree / 2)
    let longitude = sin((b.longitude - a.longitude) * degree / 2)
    let haversine =
      latitude * latitude + cos(a.latitude * degree) * cos(b.latitude * degree) * longitude * longitude
    return 2 * radius * asin(min(1, haversine.squareRoot()))
  }
}

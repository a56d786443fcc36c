// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice The fee that a taker pays out of its gross output. Rates are parts per million of the gross output.
library TakerFees {
    uint256 internal constant MAX_RATE_PPM = 10_000;
    uint256 private constant PPM = 1_000_000;

    /// @return fee Rounded down. `gross` is below 2^236.
    function feeOf(uint256 gross, uint256 ratePpm) internal pure returns (uint256 fee) {
        return (gross * ratePpm) / PPM;
    }

    /// @notice The smallest gross output that leaves `net` after its fee. It leaves exactly `net`, since one more unit of gross adds at
    /// most one unit of net.
    /// @dev gross - floor(gross x r / P) = ceil(gross x (P - r) / P), which reaches net as soon as gross x (P - r) > (net - 1) x P.
    /// `net` is below 2^236.
    function grossFor(uint256 net, uint256 ratePpm) internal pure returns (uint256 gross) {
        if (net == 0 || ratePpm == 0) return net;
        return ((net - 1) * PPM) / (PPM - ratePpm) + 1;
    }
}

// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title Replaces the gas price oracle of a rollup on a local chain, by the published formula of its Fjord upgrade.
/// @notice A local chain charges nothing for data, so nobody pays these fees. Sizes are estimated where the real oracle compresses.
contract SandboxGasPriceOracle {
    /// @dev What a signature adds to a transaction.
    uint256 private constant SIGNATURE_BYTES = 68;
    uint256 private constant MIN_SIZE = 100e6;

    /// @notice Wei per 1e12 of estimated size.
    uint256 public scaledFee;
    /// @notice Wei per gas, and wei per transaction.
    uint256 public operatorPerGas;
    uint256 public operatorConstant;

    function set(uint256 scaledFee_, uint256 operatorPerGas_, uint256 operatorConstant_) external {
        (scaledFee, operatorPerGas, operatorConstant) = (scaledFee_, operatorPerGas_, operatorConstant_);
    }

    /// @notice The most that the data of a transaction costs, in wei, whatever its bytes are.
    /// @param unsignedTxSize its length without the signature, in bytes.
    function getL1FeeUpperBound(uint256 unsignedTxSize) external view returns (uint256) {
        uint256 size = unsignedTxSize + SIGNATURE_BYTES;
        return _fee(size + size / 255 + 16);
    }

    /// @notice What the data of a transaction costs, in wei. A zero byte counts as an eighth of another byte.
    function getL1Fee(bytes calldata unsignedTx) external view returns (uint256) {
        uint256 zeros;
        for (uint256 i = 0; i < unsignedTx.length; ++i) {
            if (unsignedTx[i] == 0) ++zeros;
        }
        return _fee(unsignedTx.length - zeros + zeros / 8 + SIGNATURE_BYTES);
    }

    /// @notice What the operator of the chain charges for a transaction that uses `gasUsed`, in wei.
    function getOperatorFee(uint256 gasUsed) external view returns (uint256) {
        return gasUsed * operatorPerGas + operatorConstant;
    }

    function _fee(uint256 compressed) private view returns (uint256) {
        uint256 scaled = 836_500 * compressed;
        uint256 size = scaled > 42_585_600 + MIN_SIZE ? scaled - 42_585_600 : MIN_SIZE;
        return (size * scaledFee) / 1e12;
    }
}

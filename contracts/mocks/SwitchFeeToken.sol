// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MintableToken} from "./MintableToken.sol";

/// @title An ERC-20 for tests whose issuer can switch a fee on transfers on at any time, as that of USDT can.
contract SwitchFeeToken is MintableToken {
    uint256 private constant PPM = 1_000_000;

    uint256 private _feePpm;
    bool private _onTop;

    constructor(uint8 decimals_) MintableToken("Switch Fee", "SFT", decimals_) {}

    /// @param feePpm What the issuer gets of each transfer, in parts per million of the amount.
    /// @param onTop Whether the sender pays the fee beyond the amount; otherwise the recipient gets less.
    function setFee(uint256 feePpm, bool onTop) external onlyOwner {
        (_feePpm, _onTop) = (feePpm, onTop);
    }

    function _update(address from, address to, uint256 amount) internal override {
        uint256 fee = from == address(0) || to == address(0) ? 0 : (amount * _feePpm) / PPM;
        if (fee != 0) super._update(from, owner(), fee);
        super._update(from, to, _onTop ? amount : amount - fee);
    }
}
